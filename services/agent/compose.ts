import type { OfferedModel } from "#shared/protocol/model.ts";
import type { Broker } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import type { AgentConfig } from "./config.ts";
import { proofsOf } from "./kept-proofs.ts";
import { Jobs } from "./jobs/jobs.ts";
import { JobReceiver } from "./jobs/receive-jobs.ts";
import { Announcer } from "./machine/announce.ts";
import { claimMachine } from "./machine/claim-machine.ts";
import { MemoryReader } from "./machine/model-memory.ts";
import { atHand, type RuntimeSource, runtimeSources } from "./models/detect.ts";
import { measurement } from "./models/model-facts.ts";
import { FirstSightings, ModelNotes } from "./models/model-notes.ts";
import { RuntimeWatch } from "./models/watch-runtimes.ts";
import { llamaRuntime } from "./runtimes/llama/llama.ts";
import { readModelSettings } from "./models/model-set.ts";
import type { Runtime } from "./runtimes/runtime.ts";
import { scriptedRuntime } from "./runtimes/scripted/scripted.ts";

/** The process of an agent, and what its owner configured. */
export interface AgentProcess {
  readonly config: AgentConfig;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * True for `trunkline up`, which offers the demonstration when there is no real runtime; a plain agent waits instead.
   */
  readonly fallbackToScripted?: boolean;
  /** Ends the process when a script of the demonstration asks for it, where the agent shares the process. */
  readonly exit?: (code: number) => void;
}

interface AgentParts extends AgentProcess {
  readonly broker: Broker;
  /** True if no other agent can be on this broker. */
  readonly alone?: boolean;
  /** True if the broker is reached by a tunnel. */
  readonly tunnelled?: boolean;
  /** The runtimes of this host, if they are watched already. */
  readonly runtime?: RuntimeWatch | undefined;
}

interface StartedAgent {
  readonly machine: string;
  /** The names of the runtimes found at the start; an agent without a runtime goes on looking. */
  readonly runtime: string | null;
  readonly models: readonly OfferedModel[];
}

/** Builds an agent from its parts and starts it. The agent offers models as soon as there is a runtime. */
export async function startAgent(parts: AgentParts): Promise<StartedAgent> {
  const { config, broker, lifecycle, clock, log, tunnelled } = parts;
  const { machine } = config;
  const timing = timingAt(config.timeScale, config);

  const [claim, runtime] = await Promise.all([
    claimMachine({ broker, machine, alone: parts.alone ?? false, timing, clock }),
    parts.runtime ?? watchRuntimes(parts),
  ]);
  const { epoch } = claim;
  const { queueMax, manage, decidesLoads } = config;
  const jobs = new Jobs({ broker, runtime, timing, clock, log, queueMax, manage, decidesLoads });
  const announcer = new Announcer({ broker, machine, epoch, jobs: jobs.runner, runtime, timing, clock, tunnelled });

  const watching = claim.watch({
    newer: (failure) => lifecycle.fail(failure),
    older: () => announcer.announce(),
  });
  const onFence = (newer: string): void => watching.fenced(newer);
  const receiving = new JobReceiver({ broker, machine, epoch, jobs, onFence, tunnelled, timing, clock, log });
  lifecycle.onStop("agent", async (deadline) => {
    announcer.startDraining();
    void runtime.seams.stop();
    await jobs.drain(deadline);
    await announcer.sayGoodbye();
    watching.end();
    receiving.stop();
  });

  announcer.start();
  await broker.flush();
  const found = runtime.offer?.names ?? null;
  if (found === null) {
    log.warn(`no runtime answers yet (looked at ${runtime.locations}); this machine offers nothing until one does`);
  }
  const { trouble } = broker;
  if (trouble !== undefined) log.error(`this machine takes no work: ${trouble}`);
  else log.info({ machine, epoch, runtime: found }, "agent ready");
  return { machine, runtime: found, models: runtime.offer?.catalogue ?? [] };
}

/** Watches the runtimes of this host. Resolves after the first look. */
export async function watchRuntimes(parts: AgentProcess): Promise<RuntimeWatch> {
  const { config, lifecycle, clock, log } = parts;
  const sightings = new FirstSightings({ file: config.sightingsFile, clock, log });
  const runtime = new RuntimeWatch({
    sources: await sourcesOf(parts),
    standIn: standInOf(parts),
    settings: config.modelsFile === undefined ? {} : readModelSettings(config.modelsFile),
    firstSeen: (model) => sightings.secondsOf(model),
    memory: new MemoryReader({ boundMb: config.modelMemoryMb, modelsFolder: config.modelsFolder }),
    measurements: new ModelNotes({ file: config.measurementsFile, note: measurement, log }),
    proofs: config.continue ? proofsOf(config, log) : undefined,
    timing: timingAt(config.timeScale, config),
    clock,
    log,
  });
  lifecycle.onStop("runtimes", () => runtime.stop());
  await runtime.start();
  return runtime;
}

/**
 * Returns the locations where this agent looks for runtimes. A runtime inside this process is created here, and fails the
 * start when it cannot be created. A missing file will still be missing a second later.
 */
async function sourcesOf({ config, clock, log, exit }: AgentProcess): Promise<readonly RuntimeSource[]> {
  const { runtime: kind, runtimeUrl: urls, runtimeKey: apiKey, gguf: files, slots } = config;
  if (kind === "scripted") {
    return [atHand("demonstration", scriptedRuntime({ clock, slots, models: config.scriptedModels, exit }))];
  }
  const found = runtimeSources({ kind, urls, apiKey, slots, clock, log });
  if (files.length === 0) return found;
  const { engineDir, ggufContext: contextTokens } = config;
  const llama = await llamaRuntime({ files, engineDir, contextTokens, slots, log });
  const own = atHand(files.join(", "), llama);
  return kind === "auto" && urls.length === 0 ? [own] : [own, ...found];
}

/** Returns the demonstration as a stand-in, only where the operator named no real runtime. */
function standInOf({ config, clock, exit, fallbackToScripted }: AgentProcess): (() => Runtime) | undefined {
  const { runtime, runtimeUrl, gguf, slots, scriptedModels: models } = config;
  const nothingNamed = runtime === "auto" && runtimeUrl.length === 0 && gguf.length === 0;
  return fallbackToScripted && nothingNamed ? () => scriptedRuntime({ clock, slots, models, exit }) : undefined;
}
