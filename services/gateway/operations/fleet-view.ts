import type { FleetListing, ShownFleetMachine, ShownRoute, ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import type { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { Breakers } from "../fleet/breakers.ts";
import type { BusyClaims } from "../fleet/busy-claims.ts";
import type { Explained, Needs } from "../fleet/choose-machine.ts";
import { loadOf, type Speed } from "../fleet/expected-time.ts";
import type { JobRoutes, RouteWish } from "../fleet/job-routes.ts";
import { cutOff, type OpenJobs } from "../jobs/open-jobs.ts";
import type { BrokerWatch } from "../metrics/backing-meters.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import type { LeftOut, LeftOutMachine, Roster, RosterMachine } from "../fleet/roster.ts";
import { judgeWork, whyLeftOut, whyUnheard, whyThisRank } from "../fleet/explain-routing.ts";

interface ViewParts {
  readonly roster: Roster;
  readonly leftOut: LeftOut;
  readonly catalogues: Pick<Catalogues, "of" | "withheld">;
  readonly jobs: Pick<OpenJobs, "openOn">;
  readonly routes: JobRoutes;
  readonly breakers: Pick<Breakers, "avoidedOn" | "lastFaultOn">;
  readonly broker: Pick<BrokerWatch, "awayMs" | "trouble">;
  readonly claims: Pick<BusyClaims, "avoidedOn">;
  readonly clock: Pick<Clock, "now">;
  /** Returns the fault of a request for a model that no machine offers. */
  readonly absence: (modelId: string) => Promise<Fault>;
}

/**
 * The fleet as this gateway sees it, for operators: every machine, and where a request would go. It asks no machine.
 */
export class FleetView {
  readonly #parts: ViewParts;

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  machines(): FleetListing {
    const { roster, leftOut, broker, clock } = this.#parts;
    const nowMs = clock.now();
    const data = [
      ...roster.all(nowMs).map((seen) => this.#show(seen, nowMs)),
      ...leftOut.all(nowMs).map((each) => this.#showLeftOut(each, nowMs)),
    ];
    const byName = data.toSorted((one, other) => byText(one.machine, other.machine));
    return { object: "list", data: byName, problem: broker.trouble ?? null };
  }

  async route(wish: Pick<RouteWish, "kind" | "modelId" | "needs">): Promise<ShownRoute> {
    const { routes, roster, broker, clock, absence } = this.#parts;
    const choice = routes.explain({ ...wish, machines: undefined });
    const nowMs = clock.now();
    const machines = choice.explain().flatMap((explained) => {
      const seen = roster.find(explained.machine, nowMs);
      return seen === undefined ? [] : [showRank(explained, { seen, needs: wish.needs, nowMs })];
    });
    const { modelId: model } = wish;
    if (broker.awayMs !== undefined) {
      const unheard = { rank: null, reason: "broker_away", why: whyUnheard } as const;
      const refusal = shortly(cutOff());
      return { object: "route", model, refusal, machines: machines.map((each) => ({ ...each, ...unheard })) };
    }
    const refused = async (): Promise<Fault> => (choice.outcome === "refused" ? choice.fault : await absence(model));
    return {
      object: "route",
      model,
      refusal: choice.outcome === "machines" ? null : shortly(await refused()),
      machines,
    };
  }

  #show(seen: RosterMachine, nowMs: number): ShownFleetMachine {
    const { catalogues, jobs, routes, breakers, claims, broker } = this.#parts;
    const { presence, heardAtMs } = seen;
    const isKnown = broker.awayMs === undefined || presence.state === "gone";
    const models = catalogues.of(presence).length;
    const load = loadOf(presence, routes.pendingOn(presence));
    const broken = breakers.avoidedOn(presence.machine, nowMs);
    const withheld = catalogues.withheld(presence).length;
    const contradicted = claims.avoidedOn(presence.machine, nowMs);
    const { takesWork, why } = isKnown
      ? judgeWork({ seen, load, models, broken, withheld, contradicted }, nowMs)
      : { takesWork: false, why: whyUnheard };
    return {
      ...told(presence),
      status: isKnown ? seen.status : "unknown",
      heard_ms_ago: since(heardAtMs, nowMs),
      models,
      open_jobs: jobs.openOn(presence),
      last_fault: this.#lastFault(presence.machine, nowMs),
      takes_work: takesWork,
      why: why ?? null,
    };
  }

  #lastFault(machine: string, nowMs: number): ShownFleetMachine["last_fault"] {
    const last = this.#parts.breakers.lastFaultOn(machine);
    if (last === undefined) return null;
    const { code, model, reason = null, nowMs: atMs } = last;
    return { code, model, reason, ms_ago: since(atMs, nowMs) };
  }

  #showLeftOut({ presence, cause, heardAtMs }: LeftOutMachine, nowMs: number): ShownFleetMachine {
    return {
      ...told(presence),
      status: "left_out",
      heard_ms_ago: since(heardAtMs, nowMs),
      models: 0,
      open_jobs: this.#parts.jobs.openOn(presence),
      last_fault: null,
      takes_work: false,
      why: whyLeftOut[cause],
    };
  }
}

/** Returns the fields that a machine reports of itself. */
function told(
  presence: Presence,
): Omit<ShownFleetMachine, "status" | "heard_ms_ago" | "models" | "open_jobs" | "takes_work" | "why"> {
  const { machine, epoch, state, runtime, slots, running, queued, queueMax, strays } = presence;
  return { machine, epoch, state, runtime, slots, running, queued, queue_max: queueMax, strays: strays ?? null };
}

function showRank(
  explained: Explained,
  about: { readonly seen: RosterMachine; readonly needs: Needs; readonly nowMs: number },
): ShownRouteMachine {
  const { machine, rank, reason, load, model, speed } = explained;
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
    first_token_ms: speed === undefined ? null : Math.round(speed.firstTokenMs),
    tokens_per_second: speed === undefined ? null : tokensPerSecond(speed),
  };
}

function tokensPerSecond({ restMs, answerTokens }: Speed): number | null {
  return restMs < 1 || answerTokens === 0 ? null : Math.round((answerTokens / restMs) * 10_000) / 10;
}

function shortly({ code, message }: Fault): { code: string; message: string } {
  return { code, message };
}

function since(atMs: number, nowMs: number): number {
  return Math.max(0, Math.round(nowMs - atMs));
}

function byText(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
