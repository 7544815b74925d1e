import type { Clock } from "#shared/process/clock.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import { findModel } from "../fleet/find-model.ts";
import type { Roster, RosterMachine } from "../fleet/roster.ts";
import type { Breakers } from "./breakers.ts";
import { chooseMachine, whyNot, type Candidate, type Choice, type Chosen, type Needs } from "./choose-machine.ts";
import { loadOf, secondsUntilRoom, type Speed } from "./expected-time.ts";
import type { JobOutcome } from "./follow-frames.ts";
import { MeasuredSpeeds } from "./measured-speeds.ts";
import type { Target } from "./open-job.ts";
import { PendingJobs } from "./pending-jobs.ts";
import { WarmCaches } from "./warm-caches.ts";

/** What a machine is to be found for. */
export interface RouteWish {
  readonly kind: JobKind;
  readonly modelId: string;
  readonly needs: Needs;
  /** The only machines that may have it, if any are named. */
  readonly machines: readonly string[] | undefined;
}

interface RouteParts {
  readonly roster: Roster;
  readonly catalogues: Pick<Catalogues, "of">;
  readonly clock: Pick<Clock, "now">;
  readonly random: () => number;
  readonly breakers: Pick<Breakers, "avoids">;
}

/** Knows what machines are ranked by: who is there, what they offer, and what this gateway learnt of them on its jobs. */
export class JobRoutes {
  readonly #parts: RouteParts;
  readonly #speeds = new MeasuredSpeeds();
  readonly #warm = new WarmCaches();
  readonly #pending = new PendingJobs();

  constructor(parts: RouteParts) {
    this.#parts = parts;
  }

  /** The machines that are to be asked for this, the best first, without those that have tried it. */
  choose(wish: RouteWish & { readonly tried?: ReadonlySet<string> | undefined }): Choice {
    const { roster, clock, random } = this.#parts;
    return this.#choose(wish, { known: roster.present(clock.now()), random, tried: wish.tried });
  }

  /** Whether there is any machine that `choose` would ask; told at the first that is found. */
  canPlace({ kind, modelId, needs, machines }: RouteWish): boolean {
    const { roster, catalogues, clock } = this.#parts;
    for (const { presence, status } of roster.present(clock.now())) {
      if (machines !== undefined && !machines.includes(presence.machine)) continue;
      const catalogue = catalogues.of(presence);
      const model = findModel(catalogue, modelId);
      if (whyNot({ presence, catalogue, status }, { model, kind, needs }) === undefined) return true;
    }
    return false;
  }

  /** What `choose` says, for a person who asks: of all machines that are known, and without chance. */
  explain(wish: RouteWish): Choice {
    const { roster, clock } = this.#parts;
    const known = roster.all(clock.now());
    const byName = known.toSorted((one, other) => (one.presence.machine < other.presence.machine ? -1 : 1));
    return this.#choose(wish, { known: byName, random: () => 0 });
  }

  /** To be called when a job goes to a machine; what it comes to is to be told once. */
  placed({ machine, epoch, model }: Chosen, { needs }: Pick<RouteWish, "needs">): PlacedJob {
    const target: Target = { machine, epoch };
    const pending = this.#pending.placed(target);
    return {
      accepted: () => pending.accepted(),
      ended: (outcome) => {
        pending.ended();
        if (outcome.outcome !== "end") return;
        const nowMs = this.#parts.clock.now();
        this.#speeds.ended(machine, model.id, outcome.end, nowMs);
        if (needs.prefixes !== undefined) this.#warm.answered(needs.prefixes, target, nowMs);
      },
    };
  }

  /** A presence has come: this machine's load is known anew. */
  loadTold(machine: string): void {
    this.#pending.told(machine);
  }

  /** What this gateway placed on a machine that its last presence does not count, less what has ended since. */
  pendingOn(target: Target): number {
    return this.#pending.of(target);
  }

  speedOf(machine: string, modelId: string): Speed | undefined {
    return this.#speeds.of(machine, modelId, this.#parts.clock.now());
  }

  /** When whoever is refused because all machines are full may try again; nothing when no machine was measured yet. */
  retryAfterSeconds({ modelId, machines }: Pick<RouteWish, "modelId" | "machines">): number | undefined {
    const { roster, catalogues, clock } = this.#parts;
    const offering = roster.present(clock.now()).flatMap(({ presence }) => {
      const model = findModel(catalogues.of(presence), modelId);
      const isMeant = machines === undefined || machines.includes(presence.machine);
      if (!isMeant || model === undefined || presence.state !== "ready") return [];
      return [{ load: loadOf(presence, this.#pending.of(presence)), speed: this.speedOf(presence.machine, model.id) }];
    });
    return offering.length === 0 ? undefined : secondsUntilRoom(offering);
  }

  #choose(wish: RouteWish, among: Among): Choice {
    const { kind, modelId, needs, machines } = wish;
    const { known, random, tried } = among;
    const nowMs = this.#parts.clock.now();
    // Where one machine is there for it, it does not matter what that knows.
    const isChoice = known.length > 1 && needs.prefixes !== undefined;
    const warm = isChoice ? this.#warm.knowing(needs.prefixes, nowMs) : nobodyKnows;
    const candidates: Candidate[] = [];
    for (const each of known) {
      const { machine, epoch } = each.presence;
      if (machines !== undefined && !machines.includes(machine)) continue;
      const isWarm = warm.get(machine) === epoch;
      candidates.push(this.#candidate(each, { modelId, nowMs, tried: tried?.has(machine) ?? false, isWarm }));
    }
    return chooseMachine({ kind, modelId, needs, candidates, random });
  }

  #candidate(
    { presence, status }: RosterMachine,
    asked: { readonly modelId: string; readonly nowMs: number; readonly tried: boolean; readonly isWarm: boolean },
  ): Candidate {
    const { catalogues, breakers } = this.#parts;
    const { modelId, nowMs, tried, isWarm: warm } = asked;
    const { machine } = presence;
    const catalogue = catalogues.of(presence);
    const model = findModel(catalogue, modelId);
    const id = model?.id ?? modelId;
    return {
      presence,
      catalogue,
      status,
      avoid: tried ? "tried" : breakers.avoids(machine, id, nowMs) ? "breaker" : undefined,
      pending: this.#pending.of(presence),
      speed: model === undefined ? undefined : this.#speeds.of(machine, id, nowMs),
      warm,
    };
  }
}

const nobodyKnows: ReadonlyMap<string, string> = new Map();

interface Among {
  readonly known: readonly RosterMachine[];
  readonly random: () => number;
  readonly tried?: ReadonlySet<string> | undefined;
}

export interface PlacedJob {
  accepted(): void;
  ended(outcome: JobOutcome): void;
}
