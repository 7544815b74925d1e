import type { Broker, BrokerMessage } from "#shared/broker/broker.ts";
import { control, decodeJobHead, decodePartHead, headHeader } from "#shared/protocol/job.ts";
import { type BeatPayload, decodeJson } from "#shared/protocol/frame-payload.ts";
import { encodeFrame, frameVersion } from "#shared/protocol/frame.ts";
import {
  beatsSubject,
  echoSubject,
  machinePattern,
  parseMachineSubject,
  parseReplySubject,
  type ReplyAddress,
} from "#shared/protocol/subjects.ts";
import { addedSilenceMs, type Timing } from "#shared/protocol/timing.ts";
import type { AgentContext } from "../context.ts";
import type { Jobs } from "./jobs.ts";

interface ReceiveOptions extends AgentContext {
  readonly broker: Broker;
  readonly machine: string;
  readonly epoch: string;
  readonly jobs: Jobs;
  /** Called with the epoch of a fence: a newer agent has this machine's name. */
  readonly onFence: (epoch: string) => void;
  /** True if this agent is connected by a tunnel. */
  readonly tunnelled?: boolean | undefined;
}

/**
 * Passes the broker's messages for this boot of the machine to its jobs, ticks them and sends their beats. Malformed messages
 * are logged and dropped; a gateway that gets no answer reports that to its client.
 */
export class JobReceiver {
  readonly #options: ReceiveOptions;
  readonly #signs: GatewaySigns;
  readonly #ends: readonly { end(): void }[];
  #isProbed = false;
  #isBeatLeftOut = false;
  #tickedAtMs: number;
  #hearingSinceMs: number;

  constructor(options: ReceiveOptions) {
    const { broker, machine, epoch, clock, timing } = options;
    this.#options = options;
    this.#signs = new GatewaySigns(timing);
    this.#tickedAtMs = this.#hearingSinceMs = clock.now();
    const pace = clock.every(timing.beatIntervalMs, () => this.#tick());
    this.#ends = [
      { end: () => pace.cancel() },
      broker.onChange((connected) => {
        this.#hearingSinceMs = clock.now();
        // Messages published while the connection was down are lost. A beat tells the gateways which frames to ask for.
        if (connected) this.#beat();
      }),
      broker.subscribe(machinePattern({ machine, epoch }), this.#receive),
    ];
  }

  stop(): void {
    for (const end of this.#ends) end.end();
  }

  readonly #receive = (message: BrokerMessage): void => {
    const { clock, log } = this.#options;
    const addressed = parseMachineSubject(message.subject);
    switch (addressed.channel) {
      case "job":
        this.#receiveJob(message);
        return;
      case "part":
        this.#receivePart(message);
        return;
      case "control":
        this.#receiveControl(message);
        return;
      case "echo":
        if (message.noResponders) this.#signs.notFound(addressed.gateway, clock.now());
        return;
      case "unknown":
        log.debug({ subject: message.subject }, "a message of a kind that this agent does not know was dropped");
    }
  };

  #receiveJob(message: BrokerMessage): void {
    const { jobs, log } = this.#options;
    const reply = this.#replyOf(message);
    const decoded = decodeJobHead(message.headers?.[headHeader]);
    if (decoded.outcome === "head" && reply?.job === decoded.head.id) jobs.receive(decoded.head, message.data, reply);
    else if (decoded.outcome === "other-version")
      log.warn({ version: decoded.version, own: frameVersion }, "a job of another version of the wire was dropped");
    else log.warn({ subject: message.subject }, "a job that this agent does not understand was dropped");
  }

  #receivePart({ headers, subject, data }: BrokerMessage): void {
    const decoded = decodePartHead(headers?.[headHeader]);
    if (decoded.outcome === "head") this.#options.jobs.receivePart(decoded.head, data);
    else this.#options.log.warn({ subject }, "a part of no job was dropped");
  }

  #receiveControl(message: BrokerMessage): void {
    const { jobs, onFence, clock, log } = this.#options;
    const decoded = decodeJson(control, message.data);
    if (decoded === undefined) {
      log.warn({ subject: message.subject }, "a control that this agent does not understand was dropped");
      return;
    }
    if (decoded.kind === "lease") this.#signs.leased(decoded.gateway, clock.now());
    jobs.control(decoded, this.#replyOf(message));
    if (decoded.kind === "probe") this.#beatSoon();
    else if (decoded.kind === "fence") onFence(decoded.epoch);
  }

  /** Returns the address of the answer to a message, if it is one of this machine's. */
  #replyOf({ reply }: BrokerMessage): ReplyAddress | undefined {
    const address = reply === undefined ? undefined : parseReplySubject(reply);
    return address?.machine === this.#options.machine ? address : undefined;
  }

  #tick(): void {
    const { jobs, broker, tunnelled, clock, timing } = this.#options;
    const nowMs = clock.now();
    // Messages that came while this process stood still are not read yet, so no gateway was silent.
    if (nowMs - this.#tickedAtMs > timing.probeAfterMs) this.#hearingSinceMs = nowMs;
    this.#tickedAtMs = nowMs;
    const addedMs = addedSilenceMs({ roundTripMs: broker.roundTripMs, tunnelled }, timing);
    const hearing = { connected: broker.connected, sinceMs: this.#hearingSinceMs, addedSilenceMs: addedMs };
    jobs.tick(this.#signs.gone(jobs.gateways(), nowMs, hearing));
    // On a full line only every second beat is sent: a row for each job is much for a thin one.
    this.#isBeatLeftOut = jobs.uplink.isFull && !this.#isBeatLeftOut;
    if (!this.#isBeatLeftOut) this.#beat();
  }

  /** Beats at the end of this turn of the event loop, so that a single beat answers all probes of the turn. */
  #beatSoon(): void {
    if (this.#isProbed) return;
    this.#isProbed = true;
    setImmediate(() => {
      this.#isProbed = false;
      this.#beat();
    });
  }

  /**
   * Sends one beat to each gateway that has jobs here, whether or not answers flow. A beat shows that the agent is alive,
   * the state of each job and the number of its last frame. The gateway detects lost last frames by that number. The
   * beat's reply subject makes the broker report a gateway that is gone.
   */
  #beat(): void {
    const { machine, epoch, jobs } = this.#options;
    for (const [gateway, rows] of jobs.rows()) {
      const beat: BeatPayload = { epoch, rows, load: jobs.runner.loading };
      jobs.uplink.publish(beatsSubject({ gateway, machine }), encodeFrame({ kind: "beat" }, JSON.stringify(beat)), {
        reply: echoSubject({ machine, epoch }, gateway),
      });
    }
    jobs.uplink.measure();
  }
}

/** This agent's ability to hear gateways: its connection is up, and the process did not stand still. */
interface Hearing {
  readonly connected: boolean;
  readonly sinceMs: number;
  /** Time by which a gateway may be silent for longer, over this agent's line. */
  readonly addedSilenceMs: number;
}

/**
 * Judges whether the gateways that wait for jobs here are alive. A gateway is gone when it gave no lease for
 * `gatewayGoneAfterMs`, or when the broker did not find it for as long. Both take longer over a long line or a tunnel.
 * A shorter gap is a broker restart, after which agent and gateway come back one after the other. Time in which this
 * agent could not hear counts against no gateway. After `cutOffAfterMs` without a connection, however, all gateways
 * have given up.
 */
class GatewaySigns {
  readonly #timing: Timing;
  /** When each gateway gave its last lease; an older gateway never gives one. */
  readonly #leasedAtMs = new Map<string, number>();
  /** The first and the last time at which the broker found no subscriber for a gateway's beats. */
  readonly #missing = new Map<string, { readonly sinceMs: number; readonly lastMs: number }>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  leased(gateway: string, nowMs: number): void {
    this.#leasedAtMs.set(gateway, nowMs);
    this.#missing.delete(gateway);
  }

  /** Notes that the broker found no subscriber for a beat to this gateway. */
  notFound(gateway: string, nowMs: number): void {
    const { sinceMs = nowMs } = this.#missing.get(gateway) ?? {};
    this.#missing.set(gateway, { sinceMs, lastMs: nowMs });
  }

  /**
   * Returns the waiting gateways that are gone for good. The lease of a gateway that waits for nothing is remembered
   * for `gatewayGoneAfterMs`. The gateway does not send it again for a job that comes a moment later.
   */
  gone(waiting: ReadonlySet<string>, nowMs: number, hearing: Hearing): string[] {
    const { beatIntervalMs, gatewayGoneAfterMs, cutOffAfterMs } = this.#timing;
    for (const [gateway, leasedAtMs] of this.#leasedAtMs)
      if (!waiting.has(gateway) && nowMs - leasedAtMs > gatewayGoneAfterMs) this.#leasedAtMs.delete(gateway);
    for (const [gateway, { lastMs }] of this.#missing)
      if (nowMs - lastMs > beatIntervalMs * 1.5) this.#missing.delete(gateway);
    if (!hearing.connected) return nowMs - hearing.sinceMs > cutOffAfterMs ? [...waiting] : [];
    const goneAfterMs = gatewayGoneAfterMs + hearing.addedSilenceMs;
    return [...waiting].filter((gateway) => {
      const heardAtMs = Math.max(this.#leasedAtMs.get(gateway) ?? Infinity, hearing.sinceMs);
      const { sinceMs = 0, lastMs = -Infinity } = this.#missing.get(gateway) ?? {};
      return nowMs - heardAtMs > goneAfterMs || lastMs - sinceMs >= goneAfterMs;
    });
  }
}
