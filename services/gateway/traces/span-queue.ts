import { SpanKind } from "@opentelemetry/api";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { ReadableSpan, SpanProcessor } from "@opentelemetry/sdk-trace";
import { reasonOf } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";

/** Spans that wait for the collector; the ones after them are dropped. */
export const spansWaitingMax = 2_048;
/** Requests whose spans go to the collector in one call. */
const requestsAtOnce = 128;
const sendEveryMs = 1_000;
/** The time of one call to the collector, and the wait after a failed one. */
const collectorWaitMs = 10_000;
/** The time for the last spans when the gateway stops. */
const lastSpansMs = 1_000;

/** Counts spans: those that the collector took, and those that it never gets. */
export interface TraceMeter {
  spansSent(count: number): void;
  spansDropped(count: number): void;
}

export interface QueueParts {
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
  readonly meter: TraceMeter;
}

/** Sends ended spans to the collector. A collector that is away or slow costs spans, which are counted, and nothing else. */
export class SpanQueue implements SpanProcessor {
  readonly #url: URL;
  readonly #headers: readonly (readonly string[])[];
  readonly #parts: QueueParts;
  readonly #timer: { cancel(): void };
  readonly #stop = new AbortController();
  #ending: ReadableSpan[] = [];
  /** The spans of a request each, as bytes: objects that wait would be copied by each collection of garbage. */
  #waiting: { readonly bytes: Uint8Array; readonly spans: number }[] = [];
  #spansWaiting = 0;
  #sending: Promise<void> | undefined;
  #failedAtMs = -Infinity;

  /** `url` is where the collector takes traces, with its path. */
  constructor(url: URL, headers: readonly (readonly string[])[], parts: QueueParts) {
    this.#url = url;
    this.#headers = headers;
    this.#parts = parts;
    const { clock } = parts;
    this.#timer = clock.every(sendEveryMs, () => {
      if (clock.now() - this.#failedAtMs >= collectorWaitMs) void this.forceFlush();
    });
  }

  onStart(): void {}

  /** The spans of a request end in one turn, its own as the last. */
  onEnd(span: ReadableSpan): void {
    this.#ending.push(span);
    if (span.kind !== SpanKind.SERVER) return;
    const spans = this.#ending.length;
    const isWithin = this.#spansWaiting + spans <= spansWaitingMax;
    const bytes = isWithin ? ProtobufTraceSerializer.serializeRequest(this.#ending) : undefined;
    this.#ending = [];
    if (bytes === undefined) return this.#parts.meter.spansDropped(spans);
    this.#waiting.push({ bytes, spans });
    this.#spansWaiting += spans;
  }

  forceFlush(): Promise<void> {
    return (this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined)));
  }

  /** Sends what waits, within `lastSpansMs`. */
  async shutdown(): Promise<void> {
    this.#timer.cancel();
    const late = this.#parts.clock.after(lastSpansMs, () => this.#stop.abort());
    await this.#sending;
    await this.forceFlush();
    late.cancel();
    this.#parts.meter.spansDropped(this.#spansWaiting);
  }

  /** Sends what waits, batch after batch. A batch that a later call may bring waits on, and any other is sent once. */
  async #sendAll(): Promise<void> {
    const { clock, log, meter } = this.#parts;
    while (this.#waiting.length > 0 && !this.#stop.signal.aborted) {
      const batch = this.#waiting.slice(0, requestsAtOnce);
      const status = await this.#send(batch).catch((error: Error) => reasonOf(error.cause ?? error));
      const isTaken = status === 200;
      if (!isTaken && this.#failedAtMs === -Infinity)
        log.warn({ collector: this.#url.host, reason: status }, "the collector took no spans");
      this.#failedAtMs = isTaken ? -Infinity : clock.now();
      if (typeof status === "string" || status >= 500 || status === 429) return;
      const sent = batch.reduce((sum, { spans }) => sum + spans, 0);
      this.#waiting.splice(0, batch.length);
      this.#spansWaiting -= sent;
      if (isTaken) meter.spansSent(sent);
      else meter.spansDropped(sent);
    }
  }

  /** Makes one call, and returns its status. The body of the answer is not read, and no redirect is followed. */
  async #send(batch: readonly { readonly bytes: Uint8Array }[]): Promise<number> {
    const headers = { ...Object.fromEntries(this.#headers), "content-type": "application/x-protobuf" };
    // Messages of protobuf in a row are one message with the lists of all.
    const body = Buffer.concat(batch.map(({ bytes }) => bytes));
    const signal = AbortSignal.any([AbortSignal.timeout(collectorWaitMs), this.#stop.signal]);
    const answer = await fetch(this.#url, { method: "POST", headers, body, signal, redirect: "manual" });
    await answer.body?.cancel();
    return answer.ok ? 200 : answer.status;
  }
}
