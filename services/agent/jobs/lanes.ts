import type { Clock } from "#shared/process/clock.ts";
import type { Route } from "../machine/offer.ts";
import type { AgentJob } from "./agent-job.ts";
import { Schedule, type Submitted } from "./schedule.ts";

/** The schedule of an agent's jobs. Each lane has as many slots as its runtime takes jobs, as far as that is known. */
export class Lanes {
  readonly #schedule: Schedule;
  readonly #learnt = new LearntSlots();
  readonly #clock: Clock;

  constructor(options: { readonly queueMax: number; readonly clock: Clock }) {
    this.#schedule = new Schedule(options);
    this.#clock = options.clock;
  }

  get running(): number {
    return this.#schedule.running;
  }

  get queued(): number {
    return this.#schedule.queued;
  }

  places(): ReadonlyMap<string, number> {
    return this.#schedule.places();
  }

  /** Queues a job or refuses it for good. */
  submit(job: string, route: Route, turn: { readonly sender: string; readonly ready: boolean }): Submitted {
    const widened = this.#schedule.resize(route.lane, this.#slotsOf(route));
    const submitted = this.#schedule.submit(job, { lane: route.lane, sender: turn.sender, ready: turn.ready });
    if (widened.length === 0) return submitted;
    if (submitted.outcome === "taken") return { outcome: "taken", start: [...widened, ...submitted.start] };
    return { outcome: "full", start: widened };
  }

  makeReady(job: string): readonly string[] {
    return this.#schedule.makeReady(job);
  }

  remove(job: string): readonly string[] {
    return this.#schedule.remove(job);
  }

  /**
   * Narrows the lane of a route whose runtime refused a job as too much. Returns true if other jobs run there: their
   * end makes room, so the job can wait for another turn.
   */
  refused(route: Route): boolean {
    const others = this.#schedule.runningIn(route.lane) - 1;
    this.#learnt.refused(route.lane, others, this.#clock.now());
    this.#schedule.resize(route.lane, this.#slotsOf(route));
    return others > 0;
  }

  putBack(job: string): readonly string[] {
    return this.#schedule.putBack(job);
  }

  /** Resizes the lanes of these jobs: runtimes come and go, and their slots are learnt or reported anew. */
  resize(jobs: Iterable<AgentJob>): readonly string[] {
    const routes = new Map<string, Route>();
    for (const { route, state } of jobs) if (route && state !== "ended") routes.set(route.lane, route);
    return [...routes].flatMap(([lane, route]) => this.#schedule.resize(lane, this.#slotsOf(route)));
  }

  #slotsOf({ lane, runtime }: Route): number {
    return this.#learnt.limit(lane, runtime.slots, this.#clock.now());
  }
}

/**
 * Learns how many jobs a runtime takes at once. A runtime that refuses a job while others run has room for those only.
 * Every `tryOneMoreMs` it is tried with one more job, since the work that took the room may be gone.
 */
export class LearntSlots {
  readonly #lanes = new Map<string, { readonly slots: number; readonly learntAtMs: number }>();

  /**
   * Notes that the runtime refused a job as too much beside `running` others. With no others there is nothing to learn.
   */
  refused(lane: string, running: number, nowMs: number): void {
    if (running > 0) this.#lanes.set(lane, { slots: running, learntAtMs: nowMs });
  }

  /** Returns how many jobs may run at once now, at most the configured number. */
  limit(lane: string, configured: number, nowMs: number): number {
    const learnt = this.#lanes.get(lane);
    if (learnt === undefined) return configured;
    const slots = learnt.slots + Math.floor((nowMs - learnt.learntAtMs) / tryOneMoreMs);
    if (slots >= configured) this.#lanes.delete(lane);
    return Math.min(slots, configured);
  }
}

export const tryOneMoreMs = 10_000;
