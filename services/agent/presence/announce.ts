import { answerShapes } from "#shared/answer/answer-shape.ts";
import type { Broker } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { runtimeNameCharactersMax, type Presence } from "#shared/protocol/presence.ts";
import { presenceSubject, rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobTable } from "../jobs/job-table.ts";
import type { RuntimeWatch } from "../offer/watch-runtimes.ts";

interface AnnounceOptions {
  readonly broker: Broker;
  readonly machine: string;
  readonly epoch: string;
  readonly jobs: JobTable;
  readonly runtime: RuntimeWatch;
  readonly timing: Timing;
  readonly clock: Clock;
}

/**
 * Says that this machine is there: at its pace, at once when its offer changes, when a gateway calls the roll and when
 * the broker is back, and goodbye at the end. It shares no queue with inference.
 */
export class Announcer {
  readonly #options: AnnounceOptions;
  readonly #ends: { end(): void }[] = [];
  #draining = false;
  #gone = false;

  constructor(options: AnnounceOptions) {
    this.#options = options;
  }

  start(): void {
    const { broker, clock, runtime, timing } = this.#options;
    const pace = clock.every(timing.presenceIntervalMs, () => this.announce());
    this.#ends.push(
      { end: () => pace.cancel() },
      broker.subscribe(rollcallSubject, () => this.announce()),
      broker.onChange((connected) => {
        if (connected) this.announce();
      }),
    );
    runtime.onChange(() => this.announce());
    this.announce();
  }

  /** From now on gateways send no new work here. */
  startDraining(): void {
    this.#draining = true;
    this.announce();
  }

  async sayGoodbye(): Promise<void> {
    for (const end of this.#ends) end.end();
    this.#publish("gone");
    this.#gone = true;
    await this.#options.broker.flush().catch(() => undefined);
  }

  announce(): void {
    if (this.#gone) return;
    const ready = this.#options.runtime.offer === undefined ? "waiting" : "ready";
    this.#publish(this.#draining ? "draining" : ready);
  }

  #publish(state: Presence["state"]): void {
    const { broker, machine, epoch, jobs, runtime, timing } = this.#options;
    const presence: Presence = {
      machine,
      epoch,
      state,
      runtime: runtime.offer?.names.slice(0, runtimeNameCharactersMax) ?? null,
      ...jobs.load,
      catalogueDigest: runtime.offer?.digest ?? "",
      shapes: [...answerShapes],
      scale: timing.scale,
    };
    broker.publish(presenceSubject(machine), encodeJson(presence));
  }
}
