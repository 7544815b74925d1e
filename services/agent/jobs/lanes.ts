import type { Clock } from "#shared/process/clock.ts";
import type { Route } from "../offer/offer.ts";
import type { AgentJob } from "./agent-job.ts";
import { LearntSlots } from "./learn-slots.ts";
import { Schedule, type Submitted } from "./schedule.ts";

/** The schedule of an agent's jobs, with lanes as wide as the runtimes behind them take jobs, as far as that is known. */
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

  /** Takes a job in or refuses it for good. */
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
   * The runtime of this route refused a job as too much, and has so shown how much it takes: the lane is as narrow from
   * now on. Whether the job can wait for its turn once more, since others run there whose end makes room.
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

  /** Runtimes come and go, and learn and tell how much they take at once: makes the lanes of these jobs as wide. */
  resize(jobs: Iterable<AgentJob>): readonly string[] {
    const routes = new Map<string, Route>();
    for (const { route, state } of jobs) if (route && state !== "ended") routes.set(route.lane, route);
    return [...routes].flatMap(([lane, route]) => this.#schedule.resize(lane, this.#slotsOf(route)));
  }

  #slotsOf({ lane, runtime }: Route): number {
    return this.#learnt.limit(lane, runtime.slots, this.#clock.now());
  }
}
