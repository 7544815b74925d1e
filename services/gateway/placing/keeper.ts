import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { Control } from "#shared/protocol/job.ts";
import { machineSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { KeepStore } from "#shared/records/keep-record.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import type { Roster, RosterMachine } from "../fleet/roster.ts";
import type { Lease } from "./redis-lease.ts";
import { type KeepingMachine, type KeepPlan, planKeeps } from "./plan-keeps.ts";

interface KeeperParts {
  readonly keeps: Pick<KeepStore, "list">;
  readonly lease: Lease;
  readonly roster: Roster;
  readonly catalogues: Pick<Catalogues, "of">;
  readonly permits: (machine: string, modelId: string) => boolean;
  readonly broker: Pick<Broker, "publish">;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Tells machines which models to keep in memory. One gateway does that at a time; another one takes over when it does not
 * renew its lease. A machine is told when its presence shows another list, so a lost message is sent again.
 */
export class Keeper {
  readonly #parts: KeeperParts;
  #isAtWork = false;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  start(): { stop(): void } {
    const { clock, timing } = this.#parts;
    const pace = clock.every(timing.keepIntervalMs, () => this.#work());
    return { stop: () => pace.cancel() };
  }

  /** Returns the plan of this moment, and changes nothing. */
  async plan(): Promise<KeepPlan> {
    return planKeeps(
      await this.#parts.keeps.list(),
      this.#machines().map(({ keeping }) => keeping),
    );
  }

  #work(): void {
    // A site whose machines place nothing asks its store for nothing.
    if (this.#isAtWork || this.#machines().length === 0) return;
    this.#isAtWork = true;
    this.#tell()
      .catch((error: unknown) => this.#parts.log[isAway(error) ? "debug" : "error"]({ err: error }, notTold))
      .finally(() => {
        this.#isAtWork = false;
      });
  }

  async #tell(): Promise<void> {
    const { lease, broker, log } = this.#parts;
    if (!(await lease.hold())) return;
    const { told } = await this.plan();
    for (const { seen, keeping } of this.#machines()) {
      const { machine, memory } = keeping;
      const models = told.get(machine);
      const kept = memory.keeps?.map(({ model }) => model) ?? [];
      // A machine that came since the plan was made waits for the next one.
      if (models === undefined || kept.toSorted().join("\n") === models.toSorted().join("\n")) continue;
      broker.publish(
        machineSubject(seen.presence, "control"),
        encodeJson({ kind: "keep", models: [...models] } satisfies Control),
      );
      log.info({ machine, models, before: kept }, "a machine is told which models to keep in memory");
    }
  }

  /** Returns the machines that take work and whose owners let models be placed. */
  #machines(): { readonly seen: RosterMachine; readonly keeping: KeepingMachine }[] {
    const { roster, catalogues, permits, clock } = this.#parts;
    return roster.all(clock.now()).flatMap((seen) => {
      const { presence, status, isCordoned } = seen;
      const { machine, memory, state } = presence;
      if (memory?.isPlaced !== true || status === "offline" || state !== "ready" || isCordoned) return [];
      const offered = new Map(catalogues.of(presence).map((model) => [model.id, model]));
      const keeping = { machine, memory, offered, permits: (id: string) => permits(machine, id) };
      return [{ seen, keeping }];
    });
  }
}

const notTold = "machines were not told which models to keep";

/** True if the store does not answer, which its watch logs. */
function isAway(error: unknown): boolean {
  return error instanceof Fault && error.code === "backend_unavailable";
}
