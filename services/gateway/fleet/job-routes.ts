import type { Clock } from "#shared/process/clock.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { type Catalogues, findModel, findOffering } from "./catalogues.ts";
import type { Roster, RosterMachine } from "./roster.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import type { Breakers } from "./breakers.ts";
import { BusyClaims } from "./busy-claims.ts";
import { chooseMachine, whyNot, type Candidate, type Choice, type Chosen, type Needs } from "./choose-machine.ts";
import { loadOf, secondsUntilRoom, type Speed, MeasuredSpeeds } from "./expected-time.ts";
import type { Target } from "./roster.ts";
import { PendingJobs, type PendingJob } from "./pending-jobs.ts";
import { WarmCaches } from "./warm-caches.ts";

/** The criteria by which a machine is chosen for a job. */
export interface RouteWish {
  readonly kind: JobKind;
  readonly modelId: string;
  /** True if the model's id must equal `modelId`, without aliases. */
  readonly isExact?: boolean | undefined;
  readonly needs: Needs;
  /** The only machines that may run the job. Undefined means any machine. */
  readonly machines: readonly string[] | undefined;
}

type RoutedModel = Pick<RouteWish, "modelId" | "isExact" | "machines">;

interface RouteParts {
  readonly roster: Roster;
  readonly catalogues: Pick<Catalogues, "of" | "offering" | "withheld">;
  readonly clock: Pick<Clock, "now">;
  readonly random: () => number;
  readonly breakers: Pick<Breakers, "avoids">;
  readonly claims?: BusyClaims | undefined;
}

/**
 * Holds the facts by which machines are ranked: their presence, their models, and what this gateway measured on its own
 * jobs.
 */
export class JobRoutes {
  readonly #parts: RouteParts;
  readonly #speeds = new MeasuredSpeeds();
  readonly #warm = new WarmCaches();
  readonly #pending = new PendingJobs();
  readonly #claims: BusyClaims;
  /**
   * Where the next walk begins. It starts at random, so that gateways that do not know of each other begin at different
   * machines.
   */
  #walkFrom: number;

  constructor(parts: RouteParts) {
    this.#parts = parts;
    this.#claims = parts.claims ?? new BusyClaims(timingAt(1));
    this.#walkFrom = Math.floor(parts.random() * walkTurn);
  }

  /** Ranks the machines to ask for a job, the best first, without the machines in `tried`. */
  choose(wish: RouteWish, tried: ReadonlySet<string> = nobody): Choice {
    const { random } = this.#parts;
    const offering = this.#offering(wish);
    const known = this.#drawn(offering, wish, tried) ?? this.#presentOf(offering);
    return this.#choose(wish, { known, random, tried });
  }

  /** True if `choose` would find a machine. Returns at the first machine found. */
  canPlace(wish: RouteWish): boolean {
    const { modelId, needs } = wish;
    const { catalogues } = this.#parts;
    const names = this.#offering(wish);
    for (let step = 0; step < names.length; step += 1) {
      const found = this.#present(names[(this.#walkFrom + step) % names.length]);
      if (found === undefined) continue;
      const { presence, status } = found;
      const catalogue = catalogues.of(presence);
      const model = findModel(catalogue, modelId, wish);
      if (whyNot({ presence, catalogue, status }, { model, needs }) === undefined) return true;
    }
    return false;
  }

  /** Explains the choice to an operator, over all known machines and without chance. */
  explain(wish: RouteWish): Choice {
    const { roster, clock } = this.#parts;
    const known = roster.all(clock.now());
    const byName = known.toSorted((one, other) => (one.presence.machine < other.presence.machine ? -1 : 1));
    return this.#choose(wish, { known: byName, random: () => 0 });
  }

  /** Notes a job that goes to a machine. The caller reports its accept and its end to the returned `PendingJob`. */
  placed(chosen: Chosen): PendingJob {
    return this.#pending.placed(chosen);
  }

  /** Called when a machine accepted a job. */
  took({ machine, model }: Chosen): void {
    this.#claims.took(machine, model.id);
  }

  /** Notes that a machine refused a job as busy. True when that contradicts its presences once too often. */
  saidBusy({ machine, epoch, model }: Chosen): boolean {
    const { roster, clock } = this.#parts;
    const nowMs = clock.now();
    const presence = roster.find(machine, nowMs)?.presence;
    if (presence?.epoch !== epoch || loadOf(presence, this.#pending.of(presence)).room !== "slot") return false;
    return this.#claims.contradicted(machine, model.id, nowMs);
  }

  /** Notes the end of a job: the machine's speed and the prefixes that it now has cached. */
  answered(chosen: Chosen, { prefixes }: Needs, end: EndPayload): void {
    const nowMs = this.#parts.clock.now();
    this.#speeds.ended(chosen.machine, chosen.model.id, end, nowMs);
    if (prefixes !== undefined) this.#warm.answered(prefixes, chosen, nowMs);
  }

  /** Called when a presence of a machine arrives and reports its load anew. */
  loadTold(machine: string): void {
    this.#pending.told(machine);
    this.#claims.told(machine);
  }

  /** Returns the jobs placed on a machine that its last presence does not count, less those that ended since. */
  pendingOn(target: Target): number {
    return this.#pending.of(target);
  }

  speedOf(machine: string, modelId: string): Speed | undefined {
    return this.#speeds.of(machine, modelId, this.#parts.clock.now());
  }

  /**
   * Returns when a client may retry that is refused because all machines are full. Undefined if no machine was measured
   * yet.
   */
  retryAfterSeconds(wish: RoutedModel): number | undefined {
    const { catalogues } = this.#parts;
    const offering = this.#presentOf(this.#offering(wish)).flatMap(({ presence }) => {
      if (presence.state !== "ready") return [];
      const model = findModel(catalogues.of(presence), wish.modelId, wish);
      if (model === undefined) return [];
      return [{ load: loadOf(presence, this.#pending.of(presence)), speed: this.speedOf(presence.machine, model.id) }];
    });
    return offering.length === 0 ? undefined : secondsUntilRoom(offering);
  }

  /** Returns the names of the machines that offer the model and may run the job. */
  #offering({ modelId, isExact, machines }: RoutedModel): readonly string[] {
    const { catalogues } = this.#parts;
    const names = findOffering((id) => catalogues.offering(id), modelId, { isExact });
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
   * Draws some of many machines: machines with room at once, and machines that have a prefix of the prompt cached.
   * Weighing all machines of a large fleet would take longer than answering the request. Returns undefined if the names
   * are few, or if so few machines have room that all must be weighed. Each walk begins a little further than the one
   * before. Every machine is therefore drawn as often as any other. Most machines on a walk were also on the walk
   * before. The facts of one machine lie in a dozen places. Fetching them from far memory takes longer than
   * weighing them.
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
      // `#choose` checks later whether the machine may run the job and still has the model.
      if (found !== undefined) drawn.push(found);
    }
    return drawn;
  }

  #takesAtOnce(
    { presence, status }: RosterMachine,
    { modelId, isExact, needs }: RouteWish,
    tried: ReadonlySet<string>,
  ): boolean {
    const { catalogues, breakers, clock } = this.#parts;
    if (status !== "present" || tried.has(presence.machine)) return false;
    if (loadOf(presence, this.#pending.of(presence)).room !== "slot") return false;
    const catalogue = catalogues.of(presence);
    const model = findModel(catalogue, modelId, { isExact });
    if (model === undefined || (needs.promptTokens ?? 0) > model.context_window) return false;
    if (breakers.avoids(presence.machine, model.id, clock.now())) return false;
    if (this.#claims.isBusy(presence.machine, model.id)) return false;
    if (this.#claims.avoids(presence.machine, model.id, clock.now())) return false;
    return whyNot({ presence, catalogue, status }, { model, needs }) === undefined;
  }

  #choose(wish: RouteWish, among: Among): Choice {
    const { modelId, isExact, needs, machines } = wish;
    const { known, random, tried = nobody } = among;
    const nowMs = this.#parts.clock.now();
    // With a single machine its cached prefixes do not matter.
    const isChoice = known.length > 1 && needs.prefixes !== undefined;
    const warm = isChoice ? this.#warm.knowing(needs.prefixes, nowMs) : nobodyKnows;
    const candidates: Candidate[] = [];
    for (const each of known) {
      const { machine, epoch } = each.presence;
      if (machines !== undefined && !machines.includes(machine)) continue;
      const isWarm = warm.get(machine) === epoch;
      candidates.push(this.#candidate(each, { modelId, isExact, nowMs, tried: tried.has(machine), isWarm }));
    }
    return chooseMachine({ modelId, isExact, needs, candidates, random });
  }

  #candidate(
    { presence, status }: RosterMachine,
    asked: Pick<RouteWish, "modelId" | "isExact"> & {
      readonly nowMs: number;
      readonly tried: boolean;
      readonly isWarm: boolean;
    },
  ): Candidate {
    const { catalogues } = this.#parts;
    const { modelId, nowMs, tried, isWarm: warm } = asked;
    const { machine } = presence;
    const catalogue = catalogues.of(presence);
    const model = findModel(catalogue, modelId, asked);
    const id = model?.id ?? modelId;
    return {
      presence,
      catalogue,
      status,
      avoid: tried ? "tried" : this.#avoided(machine, id, nowMs),
      saidBusy: this.#claims.isBusy(machine, id),
      withheld: model === undefined && findModel(catalogues.withheld(presence), modelId) !== undefined,
      pending: this.#pending.of(presence),
      speed: model === undefined ? undefined : this.#speeds.of(machine, id, nowMs),
      warm,
    };
  }

  #avoided(machine: string, model: string, nowMs: number): Candidate["avoid"] {
    if (this.#parts.breakers.avoids(machine, model, nowMs)) return "breaker";
    return this.#claims.avoids(machine, model, nowMs) ? "contradicts" : undefined;
  }
}

/** Up to this many machines with a model are all weighed for each request. */
const allLookedAtMax = 32;
/** Number of machines with room that are drawn from more machines: twice as many as are ever asked. */
const drawnMax = 16;
/** Number of machines by which the start of each walk moves on. */
const walkStep = 4;
/** Modulus of the start of the walks: larger than any fleet. */
const walkTurn = 2 ** 30;

const nobody: ReadonlySet<string> = new Set();
const nobodyKnows: ReadonlyMap<string, string> = new Map();

interface Among {
  readonly known: readonly RosterMachine[];
  readonly random: () => number;
  readonly tried?: ReadonlySet<string> | undefined;
}
