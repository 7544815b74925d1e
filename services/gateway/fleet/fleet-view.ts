import type { FleetListing, ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { ShownRoute, ShownRouteMachine } from "#shared/fleet/shown-route.ts";
import type { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { Breakers } from "../dispatch/breakers.ts";
import type { Explained, Needs } from "../dispatch/choose-machine.ts";
import { loadOf, type Speed } from "../dispatch/expected-time.ts";
import type { JobRoutes, RouteWish } from "../dispatch/job-routes.ts";
import type { OpenJobs } from "../dispatch/open-jobs.ts";
import type { Catalogues } from "./catalogues.ts";
import type { LeftOut, LeftOutMachine } from "./left-out.ts";
import type { Roster, RosterMachine } from "./roster.ts";
import { judgeWork, whyLeftOut } from "./why-no-work.ts";
import { whyThisRank } from "./why-this-rank.ts";

interface ViewParts {
  readonly roster: Roster;
  readonly leftOut: LeftOut;
  readonly catalogues: Pick<Catalogues, "of">;
  readonly jobs: Pick<OpenJobs, "openOn">;
  readonly routes: JobRoutes;
  readonly breakers: Pick<Breakers, "avoidedOn">;
  readonly clock: Pick<Clock, "now">;
  /** What a request ends in for a model that no machine offers. */
  readonly absence: (modelId: string) => Promise<Fault>;
}

/** The fleet as this gateway sees it, for operators: every machine, and where a request would go. It asks nobody. */
export class FleetView {
  readonly #parts: ViewParts;

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  machines(): FleetListing {
    const { roster, leftOut, clock } = this.#parts;
    const nowMs = clock.now();
    const data = [
      ...roster.all(nowMs).map((seen) => this.#show(seen, nowMs)),
      ...leftOut.all(nowMs).map((each) => this.#showLeftOut(each, nowMs)),
    ];
    return { object: "list", data: data.toSorted((one, other) => byText(one.machine, other.machine)) };
  }

  async route(wish: Pick<RouteWish, "kind" | "modelId" | "needs">): Promise<ShownRoute> {
    const { routes, roster, clock, absence } = this.#parts;
    const choice = routes.explain({ ...wish, machines: undefined });
    const nowMs = clock.now();
    const machines = choice.explain().flatMap((explained) => {
      const seen = roster.find(explained.machine, nowMs);
      return seen === undefined ? [] : [showRank(explained, { seen, needs: wish.needs, nowMs })];
    });
    const refused = async (): Promise<Fault> =>
      choice.outcome === "refused" ? choice.fault : await absence(wish.modelId);
    return {
      object: "route",
      model: wish.modelId,
      refusal: choice.outcome === "machines" ? null : shortly(await refused()),
      machines,
    };
  }

  #show(seen: RosterMachine, nowMs: number): ShownFleetMachine {
    const { catalogues, jobs, routes, breakers } = this.#parts;
    const { presence, status, heardAtMs } = seen;
    const models = catalogues.of(presence).length;
    const load = loadOf(presence, routes.pendingOn(presence));
    const broken = breakers.avoidedOn(presence.machine, nowMs);
    const { takesWork, why } = judgeWork({ seen, load, models, broken }, nowMs);
    return {
      ...told(presence),
      status,
      heard_ms_ago: since(heardAtMs, nowMs),
      models,
      open_jobs: jobs.openOn(presence),
      takes_work: takesWork,
      why: why ?? null,
    };
  }

  #showLeftOut({ presence, cause, heardAtMs }: LeftOutMachine, nowMs: number): ShownFleetMachine {
    return {
      ...told(presence),
      status: "left_out",
      heard_ms_ago: since(heardAtMs, nowMs),
      models: 0,
      open_jobs: this.#parts.jobs.openOn(presence),
      takes_work: false,
      why: whyLeftOut[cause],
    };
  }
}

/** What a machine says of itself. */
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
