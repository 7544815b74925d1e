import type { Clock } from "#shared/process/clock.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import { findModel, findOffering } from "../fleet/find-model.ts";
import type { Roster, RosterMachine } from "../fleet/roster.ts";
import type { Breakers } from "./breakers.ts";
import { chooseMachine, whyNot, type Candidate, type Choice, type Chosen, type Needs } from "./choose-machine.ts";
import { loadOf, secondsUntilRoom, type Speed } from "./expected-time.ts";
import { MeasuredSpeeds } from "./measured-speeds.ts";
import type { Target } from "./open-job.ts";
import { PendingJobs, type PendingJob } from "./pending-jobs.ts";
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
  readonly catalogues: Pick<Catalogues, "of" | "offering">;
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
  /** Gateways that do not know of each other begin at machines of their own. */
  #walkFrom: number;

  constructor(parts: RouteParts) {
    this.#parts = parts;
    this.#walkFrom = Math.floor(parts.random() * walkTurn);
  }

  /** The machines that are to be asked for this, the best first, without those that have tried it. */
  choose(wish: RouteWish, tried: ReadonlySet<string> = nobody): Choice {
    const { random } = this.#parts;
    const offering = this.#offering(wish);
    const known = this.#drawn(offering, wish, tried) ?? this.#presentOf(offering);
    return this.#choose(wish, { known, random, tried });
  }

  /** Whether there is any machine that `choose` would ask; told at the first that is found. */
  canPlace({ kind, modelId, needs, machines }: RouteWish): boolean {
    const { catalogues } = this.#parts;
    const names = this.#offering({ modelId, machines });
    for (let step = 0; step < names.length; step += 1) {
      const found = this.#present(names[(this.#walkFrom + step) % names.length]);
      if (found === undefined) continue;
      const { presence, status } = found;
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
  placed(chosen: Chosen): PendingJob {
    return this.#pending.placed(chosen);
  }

  /** A job has come to its end there. */
  answered(chosen: Chosen, { prefixes }: Needs, end: EndPayload): void {
    const nowMs = this.#parts.clock.now();
    this.#speeds.ended(chosen.machine, chosen.model.id, end, nowMs);
    if (prefixes !== undefined) this.#warm.answered(prefixes, chosen, nowMs);
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
    const { catalogues } = this.#parts;
    const offering = this.#presentOf(this.#offering({ modelId, machines })).flatMap(({ presence }) => {
      if (presence.state !== "ready") return [];
      const model = findModel(catalogues.of(presence), modelId);
      if (model === undefined) return [];
      return [{ load: loadOf(presence, this.#pending.of(presence)), speed: this.speedOf(presence.machine, model.id) }];
    });
    return offering.length === 0 ? undefined : secondsUntilRoom(offering);
  }

  /** The names of those that may have the model, and may have this. */
  #offering({ modelId, machines }: Pick<RouteWish, "modelId" | "machines">): readonly string[] {
    const { catalogues } = this.#parts;
    const names = findOffering((id) => catalogues.offering(id), modelId);
    return machines === undefined ? names : names.filter((name) => machines.includes(name));
  }

  #presentOf(names: readonly string[]): readonly RosterMachine[] {
    const present: RosterMachine[] = [];
    for (const name of names) {
      const found = this.#present(name);
      if (found !== undefined) present.push(found);
    }
    return present;
  }

  #present(machine: string | undefined): RosterMachine | undefined {
    const { roster, clock } = this.#parts;
    const found = machine === undefined ? undefined : roster.find(machine, clock.now());
    return found?.status === "offline" ? undefined : found;
  }

  /**
   * Of many machines some that have room at once, and those that know the beginning of the prompt: to look at all of a
   * large fleet for each request would take longer than to answer it. Nothing where so few have room that all are to be
   * looked at. Each walk begins a little further than the one before, so that every machine is as often among them as any
   * other, and most that are looked at were looked at just before: all that is known of one lies in a dozen places, and to
   * fetch it from far memory takes longer than to weigh it.
   */
  #drawn(names: readonly string[], wish: RouteWish, tried: ReadonlySet<string>) {
    if (names.length <= allLookedAtMax) return undefined;
    const { clock } = this.#parts;
    this.#walkFrom = (this.#walkFrom + walkStep) % walkTurn;
    const drawn: RosterMachine[] = [];
    for (let step = 0; step < names.length && drawn.length < drawnMax; step += 1) {
      const found = this.#present(names[(this.#walkFrom + step) % names.length]);
      if (found !== undefined && this.#takesAtOnce(found, wish, tried)) drawn.push(found);
    }
    if (drawn.length < drawnMax) return undefined;
    const { prefixes } = wish.needs;
    const warm = prefixes === undefined ? nobodyKnows : this.#warm.knowing(prefixes, clock.now());
    for (const machine of warm.keys()) {
      const isDrawn = drawn.some(({ presence }) => presence.machine === machine);
      const found = isDrawn ? undefined : this.#present(machine);
      // Whether it may have this, and still has the model, is judged of all that are known.
      if (found !== undefined) drawn.push(found);
    }
    return drawn;
  }

  #takesAtOnce(
    { presence, status }: RosterMachine,
    { kind, modelId, needs }: RouteWish,
    tried: ReadonlySet<string>,
  ): boolean {
    const { catalogues, breakers, clock } = this.#parts;
    if (status !== "present" || tried.has(presence.machine)) return false;
    if (loadOf(presence, this.#pending.of(presence)).room !== "slot") return false;
    const catalogue = catalogues.of(presence);
    const model = findModel(catalogue, modelId);
    if (model === undefined || (needs.promptTokens ?? 0) > model.context_window) return false;
    if (breakers.avoids(presence.machine, model.id, clock.now())) return false;
    return whyNot({ presence, catalogue, status }, { model, kind, needs }) === undefined;
  }

  #choose(wish: RouteWish, among: Among): Choice {
    const { kind, modelId, needs, machines } = wish;
    const { known, random, tried = nobody } = among;
    const nowMs = this.#parts.clock.now();
    // Where one machine is there for it, it does not matter what that knows.
    const isChoice = known.length > 1 && needs.prefixes !== undefined;
    const warm = isChoice ? this.#warm.knowing(needs.prefixes, nowMs) : nobodyKnows;
    const candidates: Candidate[] = [];
    for (const each of known) {
      const { machine, epoch } = each.presence;
      if (machines !== undefined && !machines.includes(machine)) continue;
      const isWarm = warm.get(machine) === epoch;
      candidates.push(this.#candidate(each, { modelId, nowMs, tried: tried.has(machine), isWarm }));
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

/** Of so many machines with a model each is looked at, for each request. */
const allLookedAtMax = 32;
/** Of more so many are drawn that have room: twice as many as are ever asked. */
const drawnMax = 16;
/** By so many machines a walk begins further than the one before. */
const walkStep = 4;
/** Where the walks begin anew: larger than any fleet. */
const walkTurn = 2 ** 30;

const nobody: ReadonlySet<string> = new Set();
const nobodyKnows: ReadonlyMap<string, string> = new Map();

interface Among {
  readonly known: readonly RosterMachine[];
  readonly random: () => number;
  readonly tried?: ReadonlySet<string> | undefined;
}
