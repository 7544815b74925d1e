import type { Catalogue } from "#shared/model/model.ts";
import type { Broker } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { newEpoch } from "#shared/protocol/epoch.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import type { AgentConfig } from "./config.ts";
import { JobTable } from "./jobs/job-table.ts";
import { receiveJobs } from "./jobs/receive-jobs.ts";
import { Announcer } from "./presence/announce.ts";
import { findRuntime } from "./runtimes/detect.ts";
import type { Runtime } from "./runtimes/runtime.ts";
import { RuntimeWatch } from "./runtimes/watch-runtime.ts";

interface AgentParts {
  readonly config: AgentConfig;
  readonly broker: Broker;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly log: Log;
  /** `trunkline up` answers with the demonstration when there is no real runtime; a plain agent waits instead. */
  readonly fallbackToScripted: boolean;
  /** What the demonstration does when a script asks it to end its process, where that is not the agent's alone. */
  readonly exit?: (code: number) => void;
}

interface StartedAgent {
  readonly machine: string;
  /** What was found at the start; an agent without a runtime goes on looking. */
  readonly runtime: string | null;
  readonly models: Catalogue;
}

/** Builds an agent of its parts and starts it. It offers itself as soon as there is a runtime. */
export async function startAgent(parts: AgentParts): Promise<StartedAgent> {
  const { config, broker, lifecycle, clock, log } = parts;
  const { machine } = config;
  const timing = timingAt(config.timeScale, config);
  const epoch = newEpoch(clock.wall());

  const { find, isStandIn, reason } = runtimeFinder(parts);
  const runtime = new RuntimeWatch({ find, isStandIn, timing, clock, log });
  const { slots, queueMax } = config;
  const jobs = new JobTable({ broker, runtime, machine, timing, clock, log, slots, queueMax });
  const announcer = new Announcer({ broker, machine, epoch, jobs, runtime, timing, clock });

  const receiving = receiveJobs({ broker, machine, epoch, jobs, timing, clock, log });
  lifecycle.onStop("agent", async (deadline) => {
    announcer.startDraining();
    await jobs.drain(deadline);
    await announcer.sayGoodbye();
    receiving.stop();
    runtime.stop();
  });

  await runtime.start();
  announcer.start();
  await broker.flush();
  const found = runtime.offer?.runtime.name ?? null;
  if (found === null) log.warn(`no runtime answers yet (${reason()}); this machine offers nothing until one does`);
  log.info({ machine, epoch, runtime: found }, "agent ready");
  return { machine, runtime: found, models: runtime.offer?.catalogue ?? [] };
}

interface RuntimeFinder {
  readonly find: () => Promise<Runtime | undefined>;
  readonly isStandIn: (runtime: Runtime) => boolean;
  /** Why the last look found nothing. */
  readonly reason: () => string;
}

/**
 * Looks for what the operator wants. The demonstration is taken at the first look only, and gives way as soon as a real
 * runtime appears: one that is only away for a while must not come back as a demonstration.
 */
function runtimeFinder(parts: AgentParts): RuntimeFinder {
  const { config, clock } = parts;
  let fallbackToScripted = parts.fallbackToScripted;
  let standIn: Runtime | undefined;
  let reason = "none was looked for";
  const find = async (): Promise<Runtime | undefined> => {
    const detection = await findRuntime({
      wanted: config.runtime,
      url: config.runtimeUrl,
      scriptedModels: config.scriptedModels,
      slots: config.slots,
      fallbackToScripted,
      exit: parts.exit,
      clock,
    });
    if (detection.kind === "none") {
      reason = detection.reason;
      return undefined;
    }
    if (fallbackToScripted && detection.runtime.name === "scripted") standIn = detection.runtime;
    fallbackToScripted = false;
    return detection.runtime;
  };
  return { find, isStandIn: (runtime) => config.runtime === "auto" && runtime === standIn, reason: () => reason };
}
