import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import type { Model, OfferedModel } from "#shared/protocol/model.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { type Catalogues, findModel } from "../fleet/catalogues.ts";
import type { KnownModels } from "#shared/store/known-models.ts";
import type { Roster, RosterMachine } from "../fleet/roster.ts";
import type { MachineChoice, Chosen } from "./choose-machine.ts";
import { type Cost, loadOf } from "./expected-cost.ts";
import type { JobPlacements, ModelTarget, PlacementQuery } from "./job-placements.ts";

interface RankOptions {
  readonly roster: Roster;
  readonly catalogues: Catalogues;
  readonly knownModels: KnownModels;
  readonly placements: JobPlacements;
  /** The machines whose models run elsewhere. */
  readonly external?: ReadonlySet<string>;
  /** Time that a request waits for a machine that is away to come back. */
  readonly waitMs: number;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** A `PlacementQuery` with the signal that ends its waits. */
export interface Wanted extends PlacementQuery {
  readonly signal: AbortSignal;
}

/** Limits the requests that wait at once for machines that are away. */
export const waitingForMachinesMax = 1_000;

/** Ranks the machines that can take a request now, the best first, or returns the fault when there is none. */
export class MachineRanking {
  readonly #options: RankOptions;
  #waiting = 0;

  constructor(options: RankOptions) {
    this.#options = options;
  }

  /** Returns the machines that can take a request. Throws if there is none and none comes back in time. */
  async rank(wanted: Wanted): Promise<readonly Chosen[]> {
    const { catalogues, placements, clock, timing } = this.#options;
    let choice = placements.choose(wanted);
    if (choice.outcome === "not-offered") {
      await Promise.race([catalogues.settled(), sleep(clock, timing.catalogueWaitMs, wanted.signal)]);
      choice = placements.choose(wanted);
    }
    if (choice.outcome === "not-offered") {
      const absence = await this.absence(wanted);
      if (absence.code === "model_not_found") throw absence;
      choice = await this.#awaitMachine(wanted);
      if (choice.outcome === "not-offered") throw absence;
    }
    if (choice.outcome === "refused") throw choice.fault;
    return choice.ranked;
  }

  /**
   * Returns the fault for a model that no machine offers: the model is unknown, or its machines are away, with the
   * reason.
   */
  async absence(target: ModelTarget): Promise<Fault> {
    const { catalogues, knownModels, clock } = this.#options;
    const { modelId } = target;
    const machines = this.#machinesOf(target);
    const isKnownOn = async (names: readonly string[] | undefined): Promise<boolean> =>
      names?.length !== 0 && (await knownModels.knows(modelId, { nowMs: clock.wall(), machines: names })) === "known";
    if (!(await isKnownOn(machines))) return modelNotFound(modelId);
    const present = this.#present(target, machines);
    const offering = present.filter(({ presence }) => findModel(catalogues.of(presence), modelId) !== undefined);
    const withoutRuntime = present.filter(({ presence }) => presence.runtime === null);
    const lacksRuntime = await isKnownOn(withoutRuntime.map(({ presence }) => presence.machine));
    return absenceFault({ offering, lacksRuntime });
  }

  /** Returns the fault for a name that no target answers for: a target that is away says more than one that is unknown. */
  async absenceOf(targets: readonly ModelTarget[], asked: string): Promise<Fault> {
    const faults = await Promise.all(targets.map((target) => this.absence(target)));
    return faults.find(({ code }) => code !== "model_not_found") ?? modelNotFound(asked);
  }

  /** Waits up to `waitMs`, which the operator configures, for a machine that offers the model. */
  async #awaitMachine(wanted: Wanted): Promise<MachineChoice> {
    const { placements, clock, timing, waitMs } = this.#options;
    const untilMs = clock.now() + waitMs;
    let choice = placements.choose(wanted);
    if (this.#waiting >= waitingForMachinesMax) return choice;
    this.#waiting += 1;
    try {
      while (choice.outcome === "not-offered" && clock.now() < untilMs) {
        await sleep(clock, Math.min(timing.parkRetryMs, untilMs - clock.now()), wanted.signal);
        choice = placements.choose(wanted);
      }
    } finally {
      this.#waiting -= 1;
    }
    return choice;
  }

  /** Returns the only machines that a target may be known of. Undefined for any that is not external. */
  #machinesOf({ machines, external }: ModelTarget): readonly string[] | undefined {
    const marked = this.#options.external ?? noMachines;
    if (external) return machines?.filter((name) => marked.has(name)) ?? [...marked];
    return machines?.filter((name) => !marked.has(name));
  }

  #present({ external }: ModelTarget, machines: readonly string[] | undefined): readonly RosterMachine[] {
    const { roster, clock, external: marked = noMachines } = this.#options;
    return roster
      .present(clock.now())
      .filter(({ presence: { machine } }) => marked.has(machine) === (external === true))
      .filter(({ presence: { machine } }) => machines?.includes(machine) ?? true);
  }
}

const noMachines: ReadonlySet<string> = new Set();

/** The present machines that have a model, as far as they explain why none runs it. */
interface Having {
  /** The machines that offer the model and take no job. */
  readonly offering: readonly Pick<RosterMachine, "presence" | "isCordoned">[];
  /** True if a machine that is known for the model is there without its model server. */
  readonly lacksRuntime: boolean;
}

/** Returns the fault of a known model that no machine runs now. Machines without the model do not count. */
export function absenceFault({ offering, lacksRuntime }: Having): Fault {
  const isDraining = offering.some(({ presence }) => presence.state === "draining");
  const fault = (code: FaultCode, message: string): Fault => new Fault(code, { message, param: "model" });
  if (isDraining)
    return fault(
      "shutting_down",
      "The GPU machine with this model is draining: it finishes its jobs and takes no new one.",
    );
  if (offering.some(({ isCordoned }) => isCordoned))
    return fault(
      "agent_offline",
      "The GPU machine with this model is cordoned: its operator lets it take no new job for now.",
    );
  if (lacksRuntime) return fault("runtime_offline", "The model server on the GPU machine does not answer.");
  return fault("agent_offline", "No GPU machine that is reachable offers this model just now.");
}

export function modelNotFound(modelId: Model["id"]): Fault {
  return new Fault("model_not_found", {
    message: `The model '${modelId}' does not exist or this key may not use it.`,
    param: "model",
  });
}

const noCost: Cost = {
  loadMs: 0,
  slotMs: 0,
  backlogMs: 0,
  promptMs: 0,
  savedMs: 0,
  answerMs: 0,
  delayMs: 0,
  totalMs: 0,
};

/** Returns the machine that has an answer already, for a client that resumes it. Nothing was weighed for it. */
export function resumedChosen(presence: Presence, model: OfferedModel): Chosen {
  const { machine, epoch } = presence;
  const load = loadOf(presence, { jobs: presence.running + presence.queued, backlogTokens: 0 });
  return { machine, epoch, model, reason: undefined, cost: noCost, load, cachedTokens: 0 };
}
