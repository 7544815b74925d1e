import type { FleetListing, ShownFleetMachine, ShownRoute, ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import type { Fault } from "#shared/fault/fault.ts";
import type { MachineStore, SeenMachine } from "#shared/records/machine-record.ts";
import { machineState } from "#shared/records/shown-machine.ts";
import type { Clock } from "#shared/process/clock.ts";
import { targetText } from "#shared/records/route-record.ts";
import type { MemoryFacts } from "#shared/protocol/presence.ts";
import type { Breakers } from "../routing/breakers.ts";
import type { MachineChoice, Needs } from "../routing/choose-machine.ts";
import { type Cost, firstTokenMs, loadOf } from "../routing/expected-cost.ts";
import type { JobPlacements, PlacementQuery } from "../routing/job-placements.ts";
import { cutOff } from "../jobs/broker-line.ts";
import type { OpenJobs } from "../jobs/open-jobs.ts";
import type { BrokerWatch } from "../metrics/backing-meters.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import type { MachineRecords } from "../fleet/machine-records.ts";
import type { MachineRanking } from "../routing/rank-machines.ts";
import type { RouteRecords } from "../fleet/route-records.ts";
import type { PlacementSharing } from "../routing/share-placements.ts";
import type { LeftOut, LeftOutMachine, Roster, RosterMachine } from "../fleet/roster.ts";
import { joinReuse, showAway, showAwayRank } from "./away-machines.ts";
import {
  type Explained,
  explainChoice,
  judgeWork,
  whyExternal,
  whyGuessed,
  whyLeftOut,
  whyUnheard,
  whyThisRank,
} from "../routing/explain-routing.ts";

interface ViewParts {
  readonly roster: Roster;
  readonly leftOut: LeftOut;
  readonly catalogues: Pick<Catalogues, "of" | "withheld">;
  readonly jobs: Pick<OpenJobs, "openOn">;
  readonly placements: JobPlacements;
  readonly breakers: Pick<Breakers, "avoidedOn" | "lastFaultOn">;
  readonly broker: Pick<BrokerWatch, "awayMs" | "trouble">;
  readonly sharing?: Pick<PlacementSharing, "remark"> | undefined;
  readonly records: Pick<MachineRecords, "all" | "get">;
  /** Returns the reason for which this gateway closed the latest connection of a machine. */
  readonly whyClosed?: ((publicKey: string | undefined) => string | undefined) | undefined;
  /** Returns when machines were last heard by any gateway and what they offered, by public key. */
  readonly lastSeen: MachineStore["lastSeen"];
  readonly clock: Pick<Clock, "now" | "wall">;
  readonly modelRoutes: Pick<RouteRecords, "table">;
  /** Returns the fault of a request for a name when no machine offers any of its models. */
  readonly absenceOf: MachineRanking["absenceOf"];
}

/**
 * The fleet as this gateway sees it, for operators: every machine, and where a request would go. It asks no machine.
 */
export class FleetView {
  readonly #parts: ViewParts;

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  async machines(): Promise<FleetListing> {
    const { roster, leftOut, records, broker, sharing, clock } = this.#parts;
    // Without the store, machines that are away are shown without what was noted of them.
    const lastSeen = await this.#parts.lastSeen().catch(() => new Map<string, SeenMachine>());
    const nowMs = clock.now();
    const shown = [
      ...roster.all(nowMs).map((seen) => this.#show(seen, nowMs)),
      ...leftOut.all(nowMs).map((each) => this.#showLeftOut(each, nowMs)),
    ];
    const names = new Set(shown.map(({ machine }) => machine));
    const about = { wallMs: clock.wall(), lastSeen };
    const away = [...records.all()].flatMap((record) =>
      names.has(record.name) ? [] : (showAway(record, about) ?? []),
    );
    const data = [...shown, ...away].map((each) => this.#withClosing(each)).toSorted(byName);
    return { object: "list", data, problem: broker.trouble ?? null, remark: sharing?.remark ?? null };
  }

  /** Explains where a request for a name would go: to the machines of its model, or of one target of its route after the other. */
  async route(query: Pick<PlacementQuery, "kind" | "modelId" | "needs">): Promise<ShownRoute> {
    const { placements, modelRoutes, records, broker, clock, absenceOf } = this.#parts;
    const { modelId: model } = query;
    const route = modelRoutes.table.find(model);
    const targets = route?.targets.map((target) => ({ ...target, modelId: target.model, machines: target.machines }));
    const explained = (targets ?? [{ modelId: model, machines: undefined }]).map((target) => ({
      target,
      choice: placements.explain({ ...query, ...target }),
    }));
    const heard: ShownRouteMachine[] = [];
    const names = new Set<string>();
    for (const { target, choice } of explained) {
      const ranked = heard.filter(({ rank }) => rank !== null).length;
      const rows = this.#ranksOf(choice, query.needs).map((row) => ({
        ...row,
        rank: row.rank === null ? null : row.rank + ranked,
        model: targets === undefined ? null : target.modelId,
      }));
      for (const { machine } of rows) names.add(machine);
      // Machines that have nothing to do with a target of a route are left out.
      heard.push(...rows.filter(({ reason }) => targets === undefined || !hasNoPart.has(reason)));
    }
    const away = [...records.all()].flatMap((record) =>
      names.has(record.name) ? [] : (showAwayRank(record, clock.wall()) ?? []),
    );
    const shown = {
      object: "route" as const,
      model,
      targets: route?.targets.map(targetText) ?? null,
      machines: [...heard, ...away.toSorted(byName)],
    };
    if (broker.awayMs !== undefined) {
      const unheard = { rank: null, reason: "broker_away", why: whyUnheard } as const;
      return {
        ...shown,
        refusal: shortly(cutOff()),
        machines: shown.machines.map((each) => ({ ...each, ...unheard })),
      };
    }
    if (explained.some(({ choice }) => choice.outcome === "machines")) return { ...shown, refusal: null };
    const [refused] = explained.flatMap(({ choice }) => (choice.outcome === "refused" ? [choice.fault] : []));
    const tried = explained.map(({ target }) => target);
    return { ...shown, refusal: shortly(refused ?? (await absenceOf(tried, model))) };
  }

  #ranksOf(choice: MachineChoice, needs: Needs): readonly ShownRouteMachine[] {
    const { roster, clock } = this.#parts;
    const nowMs = clock.now();
    return explainChoice(choice).flatMap((explained) => {
      const seen = roster.find(explained.machine, nowMs);
      return seen === undefined ? [] : [showRank(explained, { seen, needs, nowMs })];
    });
  }

  #show(seen: RosterMachine, nowMs: number): ShownFleetMachine {
    const { catalogues, placements, breakers, records, broker, clock } = this.#parts;
    const { presence, status } = seen;
    const shown = this.#showHeard(seen, nowMs);
    const isKnown = broker.awayMs === undefined || presence.state === "gone";
    const models = catalogues.of(presence).length;
    const load = loadOf(presence, placements.memory.openLoads.of(presence));
    const { broken, contradicted } = breakers.avoidedOn(presence.machine, nowMs);
    const withheld = catalogues.withheld(presence).length;
    const record = records.get(presence.machine);
    const cordon = record?.cordon;
    const remarks = [
      record && joinReuse(record, clock.wall()),
      record?.external && whyExternal,
      presence.guessesSlots && whyGuessed,
    ];
    const remark = remarks.filter((each) => each !== undefined).join("; ") || undefined;
    const { takesWork, why } = isKnown
      ? judgeWork({ seen, load, models, broken, withheld, contradicted, cordon: cordon?.reason, remark }, nowMs)
      : { takesWork: false, why: whyUnheard };
    const last = breakers.lastFaultOn(presence.machine);
    return {
      ...shown,
      // The jobs of a machine that is away were ended by their gateways.
      ...(status === "offline" && { running: 0, queued: 0 }),
      state_ms_ago: Math.min(since(seen.stateSinceMs, nowMs), since(cordon?.at ?? 0, clock.wall())),
      connection: status === "offline" ? null : shown.connection,
      status: isKnown ? status : "unknown",
      models,
      last_fault: last
        ? { code: last.code, model: last.model, reason: last.reason ?? null, ms_ago: since(last.nowMs, nowMs) }
        : null,
      takes_work: takesWork,
      why: why ?? null,
    };
  }

  /** Adds the reason for which this gateway closed the connection of a machine that is away. */
  #withClosing(shown: ShownFleetMachine): ShownFleetMachine {
    const { whyClosed, records } = this.#parts;
    const isAway = shown.status === "offline" && shown.pairing !== "revoked";
    const closed = isAway ? whyClosed?.(records.get(shown.machine)?.publicKey) : undefined;
    return closed === undefined ? shown : { ...shown, why: `${shown.why}; ${closed}` };
  }

  #showLeftOut(leftOut: LeftOutMachine, nowMs: number): ShownFleetMachine {
    return {
      ...this.#showHeard(leftOut, nowMs),
      status: "left_out",
      models: 0,
      last_fault: null,
      takes_work: false,
      why: whyLeftOut[leftOut.cause],
    };
  }

  /** Returns the fields of a machine that this gateway has heard, whether it gets work or not. */
  #showHeard({ presence, heardAtMs }: Pick<RosterMachine, "presence" | "heardAtMs">, nowMs: number) {
    const { records, jobs, clock } = this.#parts;
    const { machine, epoch, state, runtime, slots, running, queued, queueMax, strays = null, version } = presence;
    const { memory } = presence;
    const record = records.get(machine);
    return {
      machine,
      epoch,
      state,
      runtime,
      slots,
      running,
      queued,
      queue_max: queueMax,
      strays,
      memory: memory === undefined ? null : showMemory(memory),
      version: version ?? null,
      pairing: record === undefined ? null : machineState(record, clock.wall()),
      connection: presence.tunnelled === true ? ("tunnel" as const) : ("direct" as const),
      heard_ms_ago: since(heardAtMs, nowMs),
      open_jobs: jobs.openOn(presence),
    };
  }
}

/** Reasons of machines that have no part in a target of a route. */
const hasNoPart: ReadonlySet<ShownRouteMachine["reason"]> = new Set(["no_model", "external"]);

function showRank(
  explained: Explained,
  about: { readonly seen: RosterMachine; readonly needs: Needs; readonly nowMs: number },
): ShownRouteMachine {
  const { machine, rank, reason, load, model, speed, cost } = explained;
  return {
    machine,
    rank: rank ?? null,
    reason: reason ?? null,
    why: whyThisRank(explained, about) ?? null,
    slots: load.slots,
    free_slots: Math.max(0, load.slots - load.occupied),
    queued: Math.max(0, load.occupied - load.slots),
    has_room: load.room !== "none",
    context_window: model?.context_window ?? null,
    prompt_tokens_per_second: speed === undefined ? null : perSecond(speed.promptTokenMs),
    tokens_per_second: speed?.tokenMs === undefined ? null : perSecond(speed.tokenMs),
    first_token_ms: speed === undefined || cost === undefined ? null : Math.round(firstTokenMs(cost)),
    cost_ms: speed === undefined || cost === undefined ? null : shownCost(cost),
  };
}

/** Returns how many tokens a second are computed. Undefined times would be infinitely fast, so they have a least. */
function perSecond(tokenMs: number): number {
  return Math.round(10_000 / Math.max(0.001, tokenMs)) / 10;
}

function shownCost(cost: Cost): ShownRouteMachine["cost_ms"] {
  return {
    load: Math.round(cost.loadMs),
    slot: Math.round(cost.slotMs),
    backlog: Math.round(cost.backlogMs),
    prompt: Math.round(cost.promptMs),
    answer: Math.round(cost.answerMs),
    delay: Math.round(cost.delayMs),
    total: Math.round(cost.totalMs),
  };
}

function showMemory(memory: MemoryFacts): ShownFleetMachine["memory"] {
  const { totalMb, freeMb, diskFreeMb, residents, loading, keeps = [], pulls = [], canPull = false } = memory;
  return {
    total_mb: totalMb,
    free_mb: freeMb,
    disk_free_mb: diskFreeMb ?? null,
    models: residents.map(({ model, memoryMb, inUse }) => ({ id: model, memory_mb: memoryMb, in_use: inUse === true })),
    loading: loading
      ? { id: loading.model, percent: loading.percent, seconds_left: Math.ceil(loading.leftMs / 1_000) }
      : null,
    keeps,
    pulls,
    can_pull: canPull,
  };
}

function shortly({ code, message }: Fault): { code: string; message: string } {
  return { code, message };
}

function since(atMs: number, nowMs: number): number {
  return Math.max(0, Math.round(nowMs - atMs));
}

function byName({ machine: one }: { readonly machine: string }, { machine: other }: { readonly machine: string }) {
  return one === other ? 0 : one < other ? -1 : 1;
}
