import type { Clock } from "#shared/process/clock.ts";
import { loadMsOf } from "#shared/placing/load-estimates.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { type Catalogues, findModel, findOffering } from "../fleet/catalogues.ts";
import type { Roster, RosterMachine } from "../fleet/roster.ts";
import type { Breakers } from "./breakers.ts";
import {
  chooseMachine,
  whyNot,
  type Candidate,
  type MachineChoice,
  type Chosen,
  type Needs,
} from "./choose-machine.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import { loadOf, secondsUntilRoom, type Work } from "./expected-cost.ts";
import { loadCost } from "./load-cost.ts";
import { type PlacedJob, PlacementMemory } from "./placement-memory.ts";

/** A model that may run a job, and the machines that may run it there. */
export interface ModelTarget {
  readonly modelId: string;
  /** True if the model's id must equal `modelId`, without aliases. */
  readonly isExact?: boolean | undefined;
  /** The only machines that may run the job. Undefined means any machine. */
  readonly machines: readonly string[] | undefined;
  /** True if the job may run elsewhere. It then runs on machines with that mark alone, and otherwise on none of them. */
  readonly external?: true | undefined;
}

/** The criteria by which a machine is chosen for a job. */
export interface PlacementQuery extends ModelTarget {
  readonly kind: JobKind;
  readonly needs: Needs;
}

interface PlacementParts {
  readonly roster: Roster;
  readonly catalogues: Pick<Catalogues, "of" | "offering" | "withheld">;
  readonly clock: Pick<Clock, "now">;
  readonly random: () => number;
  readonly breakers: Pick<Breakers, "avoids" | "contradicted" | "isBusy" | "reported" | "took">;
  /** The machines whose models run elsewhere. */
  readonly external?: ReadonlySet<string>;
}

/**
 * Holds the facts by which machines are ranked: their presence, their models, and what this gateway measured on its own
 * jobs.
 */
export class JobPlacements {
  readonly #parts: PlacementParts;
  /** The placements of this gateway and others, and the speeds that this gateway measured. */
  readonly memory: PlacementMemory;
  /**
   * The place where the next walk begins. It starts at random, so that gateways that do not know of each other begin at different
   * machines.
   */
  #walkFrom: number;
  /** Until when a model counts as being loaded, by machine, boot and model. */
  readonly #loadingUntilMs = new Map<string, number>();

  constructor(parts: PlacementParts) {
    this.#parts = parts;
    this.memory = new PlacementMemory(parts.clock);
    this.#walkFrom = Math.floor(parts.random() * walkTurn);
  }

  /** Ranks the machines to ask for a job, the best first, without the machines in `tried`. */
  choose(query: PlacementQuery, tried: ReadonlySet<string> = nobody): MachineChoice {
    const { random } = this.#parts;
    const offering = this.#offering(query);
    const drawn = offering.length > allLookedAtMax ? this.#drawn(offering, query, tried) : undefined;
    const known = drawn ?? this.#presentOf(offering);
    return this.#choose(query, { known, random, tried });
  }

  /** Returns the machines that `choose` ranks. Undefined if the request must wait or is refused. */
  rankNow(query: PlacementQuery, tried?: ReadonlySet<string>): readonly Chosen[] | undefined {
    const choice = this.choose(query, tried);
    return choice.outcome === "machines" ? choice.ranked : undefined;
  }

  /** True if `choose` would find a machine. Returns at the first machine found. */
  canPlace(query: PlacementQuery): boolean {
    const { modelId, needs } = query;
    const { catalogues } = this.#parts;
    const names = this.#offering(query);
    for (let step = 0; step < names.length; step += 1) {
      const found = this.#present(names[(this.#walkFrom + step) % names.length]);
      if (found === undefined) continue;
      const model = findModel(catalogues.of(found.presence), modelId, query);
      if (whyNot({ ...found, model }, needs) === undefined) return true;
    }
    return false;
  }

  /** Explains the choice to an operator, over all known machines and without chance. */
  explain(query: PlacementQuery): MachineChoice {
    const { roster, clock } = this.#parts;
    const known = roster.all(clock.now());
    const byName = known.toSorted((one, other) => (one.presence.machine < other.presence.machine ? -1 : 1));
    return this.#choose(query, { known: byName, random: () => 0 });
  }

  /** Follows a job that goes to a machine. With `whole` its answer comes in one piece. */
  placed(chosen: Chosen, query: PlacementQuery, { whole }: { readonly whole: boolean }): PlacedJob {
    const { load, model } = chosen;
    const isCold = model.loaded === false;
    if (isCold) this.#noteLoad(chosen);
    const { slots } = load;
    return this.memory.placed(chosen, { asked: query, slots, window: model.context_window, whole, isCold });
  }

  /** Notes that a job makes its machine load a model, so that the next ones join that load instead of beginning others. */
  #noteLoad({ machine, epoch, model }: Chosen): void {
    const nowMs = this.#parts.clock.now();
    for (const [load, untilMs] of this.#loadingUntilMs) if (untilMs < nowMs) this.#loadingUntilMs.delete(load);
    this.#loadingUntilMs.set(`${machine} ${epoch} ${model.id}`, nowMs + loadsWithin * loadMsOf(model));
  }

  /** Returns the work of a request on a machine that has its model, with its load if it is not in memory. */
  #workOn(
    { machine, epoch, memory }: Presence,
    model: OfferedModel | undefined,
    work: Work | undefined,
  ): Work | undefined {
    if (work === undefined || model?.loaded !== false) return work;
    const isBegun =
      (this.#loadingUntilMs.get(`${machine} ${epoch} ${model.id}`) ?? -Infinity) >= this.#parts.clock.now();
    // A model that left the memory left its cache behind.
    return { ...work, cachedTokens: 0, load: loadCost(model, memory, isBegun) };
  }

  /** Called when a machine accepted a job. */
  took({ machine, model }: Chosen): void {
    this.#parts.breakers.took(machine, model.id);
  }

  /** Notes that a machine refused a job as busy. True when that contradicts its presences once too often. */
  saidBusy({ machine, epoch, model }: Chosen): boolean {
    const { roster, breakers, clock } = this.#parts;
    const nowMs = clock.now();
    const presence = roster.find(machine, nowMs)?.presence;
    if (presence?.epoch !== epoch || loadOf(presence, this.memory.openLoads.of(presence)).room !== "slot") return false;
    return breakers.contradicted(machine, model.id, nowMs);
  }

  /** Called when a presence of a machine arrives and reports its load anew. */
  loadReported(presence: Presence): void {
    this.memory.openLoads.reported(presence);
    this.#parts.breakers.reported(presence.machine);
  }

  /**
   * Returns when a client may retry that is refused because all machines are full. Undefined if no machine was measured
   * yet.
   */
  retryAfterSeconds(query: ModelTarget): number | undefined {
    const { catalogues, clock } = this.#parts;
    const { openLoads, speeds } = this.memory;
    const { modelId } = query;
    const offering = this.#presentOf(this.#offering(query)).flatMap(({ presence }) => {
      if (presence.state !== "ready" || findModel(catalogues.of(presence), modelId, query) === undefined) return [];
      const load = loadOf(presence, openLoads.of(presence));
      return [{ load, speed: speeds.of(presence.machine, modelId, clock.now()) }];
    });
    return secondsUntilRoom(offering);
  }

  /** Returns the names of the machines that offer the model and may run the job. */
  #offering(target: ModelTarget): readonly string[] {
    const { catalogues, external = noMachines } = this.#parts;
    const { modelId, machines } = target;
    const names = findOffering(catalogues, modelId, target);
    if (machines === undefined && external.size === 0 && target.external === undefined) return names;
    return names.filter((name) => (machines?.includes(name) ?? true) && this.#isWhere(name, target));
  }

  /** True if the machine is external and the job may run there, or neither. */
  #isWhere(machine: string, { external }: Pick<ModelTarget, "external">): boolean {
    return (this.#parts.external ?? noMachines).has(machine) === (external === true);
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
   * Draws some of many machines: machines with room at once, and those that have most of the prompt cached.
   * Weighing all machines of a large fleet would take longer than answering the request. Returns undefined if so few machines
   * have room that all must be weighed. Each walk begins a little further than the one
   * before. Every machine is therefore drawn as often as any other. Most machines on a walk were also on the walk
   * before. The facts of one machine lie in a dozen places. Fetching them from far memory takes longer than
   * weighing them.
   */
  #drawn(names: readonly string[], query: PlacementQuery, tried: ReadonlySet<string>) {
    this.#walkFrom = (this.#walkFrom + walkStep) % walkTurn;
    const drawn: RosterMachine[] = [];
    for (let step = 0; step < names.length && drawn.length < drawnMax; step += 1) {
      const found = this.#present(names[(this.#walkFrom + step) % names.length]);
      if (found !== undefined && this.#takesAtOnce(found, query, tried)) drawn.push(found);
    }
    if (drawn.length < drawnMax) return undefined;
    for (const name of this.memory.warmest(query, names, warmestMax)) {
      const isDrawn = drawn.some(({ presence }) => presence.machine === name);
      const found = isDrawn ? undefined : this.#present(name);
      // `#choose` checks later whether the machine may run the job and still has the model.
      if (found !== undefined) drawn.push(found);
    }
    return drawn;
  }

  #takesAtOnce(found: RosterMachine, { modelId, isExact, needs }: PlacementQuery, tried: ReadonlySet<string>): boolean {
    const { presence, status } = found;
    const { catalogues, breakers, clock } = this.#parts;
    if (status !== "present" || tried.has(presence.machine)) return false;
    if (loadOf(presence, this.memory.openLoads.of(presence)).room !== "slot") return false;
    const model = findModel(catalogues.of(presence), modelId, { isExact });
    if (model === undefined || (needs.promptTokens ?? 0) > model.context_window) return false;
    if (breakers.avoids(presence.machine, model.id, clock.now()) !== undefined) return false;
    if (breakers.isBusy(presence.machine, model.id)) return false;
    return whyNot({ ...found, model }, needs) === undefined;
  }

  #choose(query: PlacementQuery, { known, random, tried = nobody }: Among): MachineChoice {
    const nowMs = this.#parts.clock.now();
    const candidates: Candidate[] = [];
    for (const each of known) {
      const { machine } = each.presence;
      if (query.machines === undefined || query.machines.includes(machine))
        candidates.push(this.#candidate(each, query, { nowMs, tried: tried.has(machine) }));
    }
    return chooseMachine({ needs: query.needs, candidates, random });
  }

  #candidate(
    { presence, status, isCordoned }: RosterMachine,
    query: PlacementQuery,
    { nowMs, tried }: { readonly nowMs: number; readonly tried: boolean },
  ): Candidate {
    const { catalogues, breakers } = this.#parts;
    const { modelId } = query;
    const { machine } = presence;
    const model = findModel(catalogues.of(presence), modelId, query);
    const id = model?.id ?? modelId;
    return {
      presence,
      model,
      status,
      isMisplaced: !this.#isWhere(machine, query),
      isCordoned,
      avoid: tried ? "tried" : breakers.avoids(machine, id, nowMs),
      saidBusy: breakers.isBusy(machine, id),
      withheld: model === undefined && findModel(catalogues.withheld(presence), modelId) !== undefined,
      known: this.memory.openLoads.of(presence),
      speed: this.memory.speeds.of(machine, modelId, nowMs),
      work: this.#workOn(presence, model, this.memory.workOn(presence, query).work),
    };
  }
}

/** A load that a job began counts as under way for this many of its expected times. */
const loadsWithin = 3;

/** Up to this many machines with a model are all weighed for each request. */
const allLookedAtMax = 32;
/** Number of machines with room that are drawn from more machines: twice as many as are ever asked. */
const drawnMax = 16;
/** Number of machines with most of the prompt cached that join the drawn ones. */
const warmestMax = 4;
/** Number of machines by which the start of each walk moves on. */
const walkStep = 4;
/** Modulus of the start of the walks: larger than any fleet. */
const walkTurn = 2 ** 30;

const nobody: ReadonlySet<string> = new Set();
const noMachines = nobody;

interface Among {
  readonly known: readonly RosterMachine[];
  readonly random: () => number;
  readonly tried?: ReadonlySet<string> | undefined;
}
