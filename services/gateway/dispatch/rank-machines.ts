import { Fault } from "#shared/fault/fault.ts";
import type { Model } from "#shared/model/model.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import type { KnownModels } from "../fleet/known-models.ts";
import type { Roster } from "../fleet/roster.ts";
import type { Choice, Chosen } from "./choose-machine.ts";
import type { JobRoutes, RouteWish } from "./job-routes.ts";

interface RankOptions {
  readonly roster: Roster;
  readonly catalogues: Catalogues;
  readonly knownModels: KnownModels;
  readonly routes: JobRoutes;
  /** How long a request waits for a machine that is away to come back. */
  readonly waitMs: number;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** What a machine is looked for with. */
export interface Wanted extends RouteWish {
  readonly signal: AbortSignal;
}

/** So many requests wait at once for machines that are away. */
export const waitingForMachinesMax = 1_000;

/** Knows which machines can take a request just now, the best first, and why there are none. */
export class MachineRanking {
  readonly #options: RankOptions;
  #waiting = 0;

  constructor(options: RankOptions) {
    this.#options = options;
  }

  /** The machines that can take a request; throws when there is none, and none comes back in time. */
  async rank(wanted: Wanted): Promise<readonly Chosen[]> {
    let choice = this.#choose(wanted);
    if (choice.outcome === "not-offered") {
      const { catalogues, clock, timing } = this.#options;
      await Promise.race([catalogues.settled(), sleep(clock, timing.catalogueWaitMs, wanted.signal)]);
      choice = this.#choose(wanted);
    }
    if (choice.outcome === "not-offered") {
      const absence = await this.absence(wanted.modelId, wanted.machines);
      if (absence.code === "model_not_found") throw absence;
      choice = await this.#awaitMachine(wanted);
      if (choice.outcome === "not-offered") throw absence;
    }
    if (choice.outcome === "refused") throw choice.fault;
    return choice.ranked;
  }

  /** The same as far as it is known at once: nothing where something is to be waited for, or refused. */
  rankNow(wanted: Wanted): readonly Chosen[] | undefined {
    const choice = this.#choose(wanted);
    return choice.outcome === "machines" ? choice.ranked : undefined;
  }

  /** Whether any machine can take a request, as far as that is known at once. */
  hasTaker(wanted: Wanted): boolean {
    return this.#options.routes.canPlace(wanted);
  }

  /** Throws what a request would end in that no machine can take, after the same waits; it is cheaper than to rank. */
  async insistOnTaker(wanted: Wanted): Promise<void> {
    if (!this.hasTaker(wanted)) await this.rank(wanted);
  }

  /** What `rank` says without those that were tried, and without any wait. */
  others(wanted: Wanted, tried: ReadonlySet<string>): readonly Chosen[] {
    const choice = this.#choose(wanted, tried);
    return choice.outcome === "machines" ? choice.ranked : [];
  }

  /** Whether a model that no machine offers is one whose machines are away, and then what keeps it away. */
  async absence(modelId: string, machines: readonly string[] | undefined): Promise<Fault> {
    const { knownModels, clock } = this.#options;
    const acquaintance = await knownModels.knows(modelId, { nowMs: clock.wall(), machines });
    if (acquaintance === "unknown") return modelNotFound(modelId);
    const present = this.#present(machines);
    const runtimesOffline = present.length > 0 && present.every(({ runtime }) => runtime === null);
    return runtimesOffline
      ? new Fault("runtime_offline", {
          message: "The model server on the GPU machine does not answer.",
          param: "model",
        })
      : new Fault("agent_offline", {
          message: "No GPU machine that is reachable offers this model just now.",
          param: "model",
        });
  }

  /** Waits as long as the operator lets it for a machine that offers the model. */
  async #awaitMachine(wanted: Wanted): Promise<Choice> {
    const { clock, timing, waitMs } = this.#options;
    const untilMs = clock.now() + waitMs;
    let choice = this.#choose(wanted);
    if (this.#waiting >= waitingForMachinesMax) return choice;
    this.#waiting += 1;
    try {
      while (choice.outcome === "not-offered" && clock.now() < untilMs) {
        await sleep(clock, Math.min(timing.parkRetryMs, untilMs - clock.now()), wanted.signal);
        choice = this.#choose(wanted);
      }
    } finally {
      this.#waiting -= 1;
    }
    return choice;
  }

  #choose(wanted: Wanted, tried?: ReadonlySet<string>): Choice {
    return this.#options.routes.choose(wanted, tried);
  }

  #present(machines: readonly string[] | undefined): Presence[] {
    const { roster, clock } = this.#options;
    const present = roster.present(clock.now()).map(({ presence }) => presence);
    return machines === undefined ? present : present.filter(({ machine }) => machines.includes(machine));
  }
}

export function modelNotFound(modelId: Model["id"]): Fault {
  return new Fault("model_not_found", {
    message: `The model '${modelId}' does not exist or this key may not use it.`,
    param: "model",
  });
}
