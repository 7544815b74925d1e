import packageJson from "../../../package.json" with { type: "json" };
import type { Broker } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { frameVersion } from "#shared/protocol/frame.ts";
import {
  type MachineLoad,
  problemCharactersMax,
  roundTripMsMax,
  runtimeNameCharactersMax,
  type Presence,
} from "#shared/protocol/presence.ts";
import { presenceSubject, replySubject, rollcallSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { RuntimeWatch } from "../models/watch-runtimes.ts";

interface AnnounceOptions {
  readonly broker: Broker;
  readonly machine: string;
  readonly epoch: string;
  readonly jobs: { readonly load: MachineLoad };
  readonly runtime: RuntimeWatch;
  readonly timing: Timing;
  readonly clock: Clock;
  /** True if this agent is connected by a tunnel. */
  readonly tunnelled?: boolean | undefined;
}

/** Interval at which grants are tried again while the broker denies one; shorter than `denialStandsMs`. */
const grantTrialMs = 2_000;

/**
 * Publishes this machine's presence at an interval. It also publishes at once when the offer changes, when a gateway
 * calls the roll and when the broker is back. At the end it publishes a goodbye. It shares no queue with inference.
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
    const trials = clock.every(grantTrialMs, () => {
      if (broker.trouble !== undefined) this.#tryGrant();
    });
    this.#ends.push(
      { end: () => pace.cancel() },
      { end: () => trials.cancel() },
      broker.subscribe(rollcallSubject, () => this.announce()),
      broker.onChange((connected) => {
        if (!connected) return;
        this.#tryGrant();
        this.announce();
      }),
    );
    runtime.onChange(() => this.announce());
    this.#tryGrant();
    this.announce();
  }

  /** Announces that gateways are to send no new jobs here. */
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
    const { broker, runtime } = this.#options;
    const isReady = runtime.offer !== undefined && broker.trouble === undefined;
    this.#publish(this.#draining ? "draining" : isReady ? "ready" : "waiting");
  }

  /**
   * Publishes to a gateway that does not exist, so that a broker that denies replies reports it now, not at the first
   * job.
   */
  #tryGrant(): void {
    const { broker, machine } = this.#options;
    broker.publish(replySubject({ gateway: newToken(), machine, job: newToken() }), new Uint8Array());
  }

  #publish(state: Presence["state"]): void {
    const { broker, machine, epoch, jobs, runtime, timing, tunnelled } = this.#options;
    const presence: Presence = {
      machine,
      epoch,
      state,
      runtime: runtime.offer?.names.slice(0, runtimeNameCharactersMax) ?? null,
      problem: broker.trouble?.slice(0, problemCharactersMax),
      ...jobs.load,
      ...roundTripOf(broker),
      catalogueDigest: runtime.offer?.digest ?? "",
      ...(tunnelled && { tunnelled }),
      ...(runtime.answersNotUtf8 > 0 && { answersNotUtf8: runtime.answersNotUtf8 }),
      version: packageJson.version,
      wire: frameVersion,
      ...(broker.connectionId !== undefined && { connection: broker.connectionId }),
      scale: timing.scale,
    };
    broker.publish(presenceSubject(machine), encodeJson(presence));
  }
}

const roundTripStepMs = 100;

/** Rounds the round trip up to steps, so that small changes do not make gateways read a presence anew. */
function roundTripOf({ roundTripMs }: Broker): Pick<Presence, "roundTripMs"> {
  if (roundTripMs < roundTripStepMs) return {};
  const steps = Math.ceil(roundTripMs / roundTripStepMs);
  return { roundTripMs: Math.min(steps * roundTripStepMs, roundTripMsMax) };
}
