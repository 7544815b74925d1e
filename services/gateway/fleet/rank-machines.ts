import { Fault } from "#shared/fault/fault.ts";
import type { Model } from "#shared/model/model.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { type Catalogues, findModel } from "./catalogues.ts";
import type { KnownModels } from "./known-models.ts";
import type { Roster } from "./roster.ts";
import type { Choice, Chosen } from "./choose-machine.ts";
import type { JobRoutes, RouteWish } from "./job-routes.ts";

interface RankOptions {
  readonly roster: Roster;
  readonly catalogues: Catalogues;
  readonly knownModels: KnownModels;
  readonly routes: JobRoutes;
  /** Time that a request waits for a machine that is away to come back. */
  readonly waitMs: number;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** A `RouteWish` with the signal that ends its waits. */
export interface Wanted extends RouteWish {
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

  /** Returns the same as `rank` without waiting. Undefined if the request must wait or is refused. */
  rankNow(wanted: Wanted): readonly Chosen[] | undefined {
    const choice = this.#choose(wanted);
    return choice.outcome === "machines" ? choice.ranked : undefined;
  }

  /** True if a machine can take a request, as far as the gateway knows without waiting. */
  hasTaker(wanted: Wanted): boolean {
    return this.#options.routes.canPlace(wanted);
  }

  /**
   * Throws the fault of a request that no machine can take, after the same waits as `rank`. It is cheaper than `rank`.
   */
  async insistOnTaker(wanted: Wanted): Promise<void> {
    if (!this.hasTaker(wanted)) await this.rank(wanted);
  }

  /** Returns the same as `rank` without the machines in `tried`, and without waiting. */
  others(wanted: Wanted, tried: ReadonlySet<string>): readonly Chosen[] {
    const choice = this.#choose(wanted, tried);
    return choice.outcome === "machines" ? choice.ranked : [];
  }

  /**
   * Returns the fault for a model that no machine offers: the model is unknown, or its machines are away, with the
   * reason.
   */
  async absence(modelId: string, machines: readonly string[] | undefined): Promise<Fault> {
    const { catalogues, knownModels, clock } = this.#options;
    const acquaintance = await knownModels.knows(modelId, { nowMs: clock.wall(), machines });
    if (acquaintance === "unknown") return modelNotFound(modelId);
    const present = this.#present(machines);
    const drains = (each: Presence): boolean =>
      each.state === "draining" && findModel(catalogues.of(each), modelId) !== undefined;
    if (present.some(drains)) {
      return new Fault("shutting_down", {
        message: "The GPU machine with this model is draining: it finishes its jobs and takes no new one.",
        param: "model",
      });
    }
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

  /** Waits up to `waitMs`, which the operator configures, for a machine that offers the model. */
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
