import { encodeJson, type BeatPayload, type BeatRow, type LoadNews } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import { beatsSubject, echoSubject } from "#shared/protocol/subjects.ts";
import type { Uplink } from "./uplink.ts";
import type { AgentJob } from "./agent-job.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/**
 * Sends one beat to each gateway that has jobs here, whether or not answers flow. A beat shows that the agent is alive,
 * the state of each job and the number of its last frame. The gateway detects lost last frames by that number. The
 * beat's reply subject makes the broker report a gateway that is gone.
 */
export function sendBeats(options: {
  readonly machine: string;
  readonly epoch: string;
  readonly jobs: {
    rows(): ReadonlyMap<string, BeatRow[]>;
    readonly loading: LoadNews | undefined;
    readonly uplink: Pick<Uplink, "publish" | "measure">;
  };
}): void {
  const { machine, epoch, jobs } = options;
  for (const [gateway, rows] of jobs.rows()) {
    const beat: BeatPayload = { epoch, rows, load: jobs.loading };
    jobs.uplink.publish(beatsSubject({ gateway, machine }), encodeFrame({ kind: "beat" }, encodeJson(beat)), {
      reply: echoSubject({ machine, epoch }, gateway),
    });
  }
  jobs.uplink.measure();
}

/** Returns a beat row for every job, by the gateway that waits for it. `places` are those of the queued jobs. */
export function beatRows(
  jobs: Iterable<AgentJob>,
  places: ReadonlyMap<AgentJob, number>,
): ReadonlyMap<string, BeatRow[]> {
  const rows = new Map<string, BeatRow[]>();
  for (const job of jobs) {
    const { head, state, outputTokens, frames, gateway } = job;
    if (gateway === undefined) continue;
    // The end of an answer may wait behind bytes that are ahead of the credit.
    const shown = state === "ended" && frames.endedAtMs === undefined ? "running" : state;
    const row: BeatRow = [head.id, shown, places.get(job) ?? 0, outputTokens, frames.lastSequence, frames.credit];
    rows.getOrInsertComputed(gateway, () => []).push(row);
  }
  return rows;
}

interface Signs {
  /** The time of the gateway's last lease; an older gateway never sends one. */
  leasedAtMs: number | undefined;
  /** The first and the last time at which the broker found no subscriber for this gateway's beats. */
  missing: { readonly sinceMs: number; lastMs: number } | undefined;
}

/** This agent's ability to hear gateways: its connection is up, and the process did not stand still. */
export interface Hearing {
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
export class GatewaySigns {
  readonly #timing: Timing;
  readonly #signs = new Map<string, Signs>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  leased(gateway: string, nowMs: number): void {
    const signs = this.#of(gateway);
    signs.leasedAtMs = nowMs;
    signs.missing = undefined;
  }

  /** Notes that the broker found no subscriber for a beat to this gateway. */
  notFound(gateway: string, nowMs: number): void {
    const signs = this.#of(gateway);
    if (signs.missing === undefined) signs.missing = { sinceMs: nowMs, lastMs: nowMs };
    else signs.missing.lastMs = nowMs;
  }

  /**
   * Returns the waiting gateways that are gone for good. The lease of a gateway that waits for nothing is remembered
   * for `gatewayGoneAfterMs`. The gateway does not send it again for a job that comes a moment later.
   */
  gone(waiting: ReadonlySet<string>, nowMs: number, hearing: Hearing): string[] {
    for (const [gateway, { leasedAtMs = -Infinity }] of this.#signs) {
      const isOver = nowMs - leasedAtMs > this.#timing.gatewayGoneAfterMs;
      if (!waiting.has(gateway) && isOver) this.#signs.delete(gateway);
    }
    if (!hearing.connected) return nowMs - hearing.sinceMs > this.#timing.cutOffAfterMs ? [...waiting] : [];
    return [...waiting].filter((gateway) => this.#isGone(this.#of(gateway), nowMs, hearing));
  }

  #isGone(signs: Signs, nowMs: number, hearing: Hearing): boolean {
    const { beatIntervalMs } = this.#timing;
    const goneAfterMs = this.#timing.gatewayGoneAfterMs + hearing.addedSilenceMs;
    const { leasedAtMs, missing } = signs;
    if (leasedAtMs !== undefined && nowMs - Math.max(leasedAtMs, hearing.sinceMs) > goneAfterMs) return true;
    if (missing === undefined) return false;
    const isBack = nowMs - missing.lastMs > beatIntervalMs * 1.5;
    if (isBack) signs.missing = undefined;
    return !isBack && missing.lastMs - missing.sinceMs >= goneAfterMs;
  }

  #of(gateway: string): Signs {
    return this.#signs.getOrInsertComputed(gateway, () => ({ leasedAtMs: undefined, missing: undefined }));
  }
}
