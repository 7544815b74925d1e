import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Clock } from "#shared/process/clock.ts";
import { newEpoch, newToken } from "#shared/protocol/identifiers.ts";
import { machinePattern, presenceSubject, replySubject, rollcallSubject } from "#shared/protocol/subjects.ts";
import { pairingFile, readPairing } from "#shared/site/pairing-file.ts";
import { type AgentConfig, agentConfig } from "../../agent/config.ts";
import { findRuntimes } from "../../agent/find-runtimes.ts";
import { proofsOf } from "../../agent/kept-proofs.ts";
import type { ServiceHost } from "../service/service-host.ts";
import type { ServiceManager } from "../service/service-manager.ts";
import { folderCheck, isOpenToOthers, natsChecks, openToOthers, settingsCheck } from "./host-checks.ts";
import { type Check, failed, type Finding, type DoctorContext, ok, skipped, tryTo, warning } from "./run-checks.ts";
import { wayChecks } from "./way-checks.ts";

interface Machine extends DoctorContext {
  readonly host: ServiceHost;
  /** Undefined where there is none that Trunkline knows. */
  readonly manager: ServiceManager | undefined;
}

/** Returns the checks of a machine: its agent, its way to the site, and its model servers. */
export function machineChecks(machine: Machine): readonly Check[] {
  const { environment, clock, version } = machine;
  const settings = settingsCheck(machine, agentConfig);
  const config = tryTo(() => agentConfig(environment));
  if (config === undefined) return [settings];
  const { natsUrl, stateDir } = config;
  const pairing = tryTo(() => readPairing(stateDir));
  const way =
    natsUrl !== undefined
      ? natsChecks({ config, clock, subjects: subjectsOf(config, clock) })
      : pairing === undefined
        ? []
        : wayChecks({ ...pairing, credential: pairing, environment, clock, version });
  return [
    settings,
    folderCheck(resolve(stateDir)),
    { name: "pairing", look: async () => lookAtPairing(config) },
    { name: "service", look: () => lookAtService(machine) },
    ...way,
    { name: "model servers", look: (signal) => lookForRuntimes(config, { clock, signal }) },
    { name: "answers that go on", look: async () => lookAtProofs(config) },
  ];
}

function subjectsOf({ machine }: AgentConfig, clock: Clock) {
  // No agent has this epoch.
  const epoch = newEpoch(clock.wall());
  return {
    subscribe: [machinePattern({ machine, epoch }), presenceSubject(machine), rollcallSubject],
    publish: [replySubject({ gateway: newToken(), machine, job: newToken() })],
  };
}

function lookAtPairing({ natsUrl, stateDir }: AgentConfig): Finding {
  if (natsUrl !== undefined)
    return skipped("TRUNKLINE_NATS_URL is set: this machine connects to NATS and needs no pairing.");
  const file = resolve(pairingFile(stateDir));
  const pairing = readPairing(stateDir);
  if (pairing === undefined) {
    return failed(
      `This machine is not paired: there is no ${file}.`,
      "Run the line that `trunkline machines pair <name>` prints on the site, or set TRUNKLINE_STATE_DIR to the folder of the pairing.",
    );
  }
  if (isOpenToOthers(file)) return openToOthers(file, "600");
  return ok(`This machine is '${pairing.machine}' of ${pairing.origin} since ${pairing.pairedAt.slice(0, 10)}.`);
}

async function lookAtService({ host, manager }: Machine): Promise<Finding> {
  if (manager === undefined) return skipped("This host has no service manager that Trunkline knows.");
  const { places, state } = manager;
  if (!existsSync(places.definition)) {
    return skipped("The agent is no service here; `trunkline agent install` makes it one.");
  }
  if (state === undefined) return ok(`The service is installed (${places.definition}).`);
  const { exitCode, output } = await host.run(state.argv);
  if (exitCode === 0 && !state.ended.test(output) && /=active$/m.test(output)) return ok("The service runs.");
  return failed("The service does not run.", "`trunkline agent logs` says why; `trunkline agent install` starts it.");
}

/** Tells the latest proof of each model: the answers that it goes on with after another machine, and why not with others. */
function lookAtProofs(config: AgentConfig): Finding {
  if (!config.continue)
    return skipped("TRUNKLINE_CONTINUE is off: this machine goes on with no answer of another one.");
  const proofs = proofsOf(config, { warn: () => undefined }).all();
  const told = [...new Map(proofs.map((each) => [each.model, each])).values()].map(
    ({ model, continues: kinds, differs }) => {
      const reasons = Object.entries(differs).map(([kind, why]) => `not ${kind}: ${why}`);
      return `${model}: ${[...kinds, ...reasons].join(", ") || "its answers were too short to tell"}`;
    },
  );
  if (told.length > 0) return ok(`${told.join("; ")}.`);
  return skipped(
    "Nothing is proved yet: the agent tries models that are in memory and have a digest, while it is idle.",
  );
}

async function lookForRuntimes(
  config: AgentConfig,
  dependencies: { clock: Clock; signal: AbortSignal },
): Promise<Finding> {
  const locations = await findRuntimes(config, dependencies);
  const found = locations.filter(({ runtime }) => runtime !== undefined);
  const told = found.map(({ runtime, location, models, problem }) => {
    const count = models === undefined ? "" : ` with ${models} ${models === 1 ? "model" : "models"}`;
    return `${runtime} at ${location}${count}${problem === undefined ? "" : ` (${problem})`}`;
  });
  if (found.length === 0) {
    const looked = locations.map(({ location, problem }) => `${location}: ${problem}`).join("; ");
    return failed(
      `No model server answers (${looked}).`,
      "Start one, such as Ollama, or name where it is in TRUNKLINE_RUNTIME_URL.",
    );
  }
  const missing = config.runtimeUrl.length === 0 ? [] : locations.filter(({ runtime }) => runtime === undefined);
  if (missing.length > 0) {
    return warning(
      `${told.join(", ")}; but not ${missing.map(({ location, problem }) => `${location} (${problem})`).join(", ")}.`,
      "Start it, or take it out of TRUNKLINE_RUNTIME_URL.",
    );
  }
  if (found.every(({ models = 1 }) => models === 0)) {
    return warning(`${told.join(", ")}.`, "Get a model, such as by `ollama pull llama3.2`.");
  }
  const guessed = found.filter(({ guessesSlots }) => guessesSlots);
  if (guessed.length > 0) {
    return warning(
      `${told.join(", ")}. How many jobs ${guessed.map(({ location }) => location).join(", ")} runs at once is a guess.`,
      "Set TRUNKLINE_SLOTS to the number that the server runs at once; vLLM and SGLang (--enable-metrics) report their load.",
    );
  }
  return ok(`${told.join(", ")}.`);
}
