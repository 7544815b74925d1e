import {
  type Attributes,
  type HrTime,
  INVALID_SPAN_CONTEXT,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import { faultEntry } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { BeginTrace, Exchange, RequestFacts, RequestOutcome, RequestTrace } from "../http/request-state.ts";
import { sinceArrivalMs } from "../http/timed-response.ts";
import { recordedTextMax, triedMax } from "../requests/record-request.ts";
import type { ToldRequest } from "../requests/settle.ts";

/** Traces of clients that are followed in each second; the ones after them are only linked. */
export const followedPerSecond = 50;

/** The operations of the GenAI conventions, by the kinds of endpoints that have another name. */
const operations: Readonly<Record<string, string>> = {
  message: "chat",
  response: "chat",
  "ollama-chat": "chat",
  "ollama-generate": "text_completion",
  completion: "text_completion",
  "ollama-embed": "embeddings",
  "ollama-embeddings": "embeddings",
};

interface TraceParts {
  readonly tracer: Tracer;
  /** True if the sampled flag of a `traceparent` decides. */
  readonly isParentBased: boolean;
  readonly clock: Pick<Clock, "now" | "wall">;
}

/** Returns a function that begins the trace of a request. */
export function traceRequests(parts: TraceParts): BeginTrace {
  let [second, followed] = [0, 0];
  const follows = (): boolean => {
    const now = Math.floor(parts.clock.now() / 1_000);
    followed = now === second ? followed + 1 : 1;
    second = now;
    return followed <= followedPerSecond;
  };
  return (exchange) => new TracedRequest(exchange, { ...parts, follows });
}

type PastStep = readonly [name: string, fromMs: number, toMs: number];

const noSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/** The trace of a request. It is decided once, and its spans are made when the request has ended. */
class TracedRequest implements RequestTrace {
  /** Let go of once it is not needed: the account of a request stays longer than its connection. */
  #exchange: Exchange | undefined;
  readonly #parts: TraceParts & { readonly follows: () => boolean };
  /** The time of day at which the monotonic clock was zero, the same for all spans of the request. */
  readonly #zeroMs: number;
  #span: Span | undefined;
  #takenAtMs: number | undefined;

  constructor(exchange: Exchange, parts: TraceParts & { readonly follows: () => boolean }) {
    this.#exchange = exchange;
    this.#parts = parts;
    this.#zeroMs = parts.clock.wall() - parts.clock.now();
  }

  get id(): string | undefined {
    const span = this.#begun(true);
    return span.isRecording() ? span.spanContext().traceId : undefined;
  }

  parentOf(): string {
    this.#takenAtMs = this.#parts.clock.now();
    const { traceId, spanId, traceFlags } = this.#begun(true).spanContext();
    return `00-${traceId}-${spanId}-0${traceFlags}`;
  }

  closed({ outcome = "client_closed" }: RequestFacts): void {
    // A request with an account ends with its settlement.
    const { request, reply } = this.#exchange ?? {};
    if (outcome === "ok" || request === undefined || request.state.reporter !== undefined) return;
    this.#end(this.#begun(false), outcome, { "http.response.status_code": reply?.statusCode });
  }

  settled(request: ToldRequest, { model, streamed, answer }: RequestFacts, booked: string | null): void {
    const span = this.#begun(true);
    if (!span.isRecording()) return;
    const { answer: course, outcome = "client_closed", endedAtMs = this.#parts.clock.now() } = request;
    const { machine, tried, endFrame, loadWaitMs } = course;
    if (this.#takenAtMs !== undefined)
      this.#past(span, ["admit and choose", this.#takenAtMs, tried[0]?.offeredAtMs ?? endedAtMs]);
    for (const each of tried.slice(-triedMax)) {
      const { offer, fromTokens, code, offeredAtMs, overAtMs = endedAtMs } = each;
      const offered = this.#past(span, ["offer", offeredAtMs, overAtMs], {
        "trunkline.machine": offer.chosen.machine,
        "trunkline.job": offer.job,
        "trunkline.from_tokens": fromTokens,
        "error.type": code,
      });
      if (each !== tried.at(-1) || endFrame === undefined) continue;
      for (const step of stepsOn(endFrame.timings, loadWaitMs, overAtMs)) this.#past(offered, step);
    }
    const reason = outcome === "ok" ? (endFrame?.finishReason ?? "length") : "error";
    this.#end(span, outcome, {
      // A name that no machine offers may be the client's own invention.
      "gen_ai.request.model": booked === null ? undefined : model?.slice(0, recordedTextMax),
      "gen_ai.request.stream": streamed || undefined,
      ...(machine !== undefined && {
        "gen_ai.response.model": course.model,
        "gen_ai.response.finish_reasons": [reason],
        "gen_ai.response.time_to_first_chunk": answer?.firstTokenMs && answer.firstTokenMs / 1_000,
        "gen_ai.usage.input_tokens": answer?.promptTokens,
        "gen_ai.usage.output_tokens": answer?.completionTokens,
        "gen_ai.usage.cache_read.input_tokens": course.usage?.cachedTokens,
        "trunkline.machine": machine,
      }),
      "http.response.status_code": request.status,
      "trunkline.request": request.id,
      "trunkline.key": request.key.id,
    });
  }

  /** Decides about the trace at its first call. Without a proven key a client's trace is only linked. */
  #begun(isProven: boolean): Span {
    if (this.#span !== undefined || this.#exchange === undefined) return (this.#span ??= noSpan);
    const { tracer, isParentBased, follows, clock } = this.#parts;
    const { request, reply } = this.#exchange;
    const { traceparent } = request.headers;
    const parent = typeof traceparent === "string" ? parseTraceParent(traceparent) : null;
    const wanted = parent !== null && (!isParentBased || (parent.traceFlags & TraceFlags.SAMPLED) !== 0);
    const isFollowed = parent !== null && isProven && (!wanted || follows());
    const context = isFollowed ? trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true }) : ROOT_CONTEXT;
    const links = parent === null || isFollowed ? [] : [{ context: parent }];
    const startTime = this.#timeAt(clock.now() - sinceArrivalMs(reply.raw));
    this.#span = tracer.startSpan("request", { kind: SpanKind.SERVER, startTime, links }, context);
    if (!this.#span.isRecording()) this.#exchange = undefined;
    return this.#span;
  }

  /** Makes the span of a step that is over, below another one. */
  #past(above: Span, [name, fromMs, toMs]: PastStep, attributes: Attributes = {}): Span {
    const options = { startTime: this.#timeAt(fromMs), attributes };
    const span = this.#parts.tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, above));
    span.end(this.#timeAt(Math.max(fromMs, toMs)));
    return span;
  }

  #end(span: Span, outcome: RequestOutcome, attributes: Attributes): void {
    const { method, routeOptions } = this.#exchange?.request ?? {};
    const { url: route, config } = routeOptions ?? {};
    this.#exchange = undefined;
    const kind = config?.endpoint?.kind;
    const operation = kind && (operations[kind] ?? kind);
    const { "gen_ai.request.model": model } = attributes;
    span.updateName((operation ? [operation, model] : [method, route]).filter(Boolean).join(" "));
    span.setAttributes({
      ...attributes,
      ...(operation && { "gen_ai.operation.name": operation, "gen_ai.provider.name": "trunkline" }),
      "http.request.method": method,
      "http.route": route,
      "error.type": outcome === "ok" ? undefined : outcome,
    });
    if (outcome !== "ok" && faultEntry(outcome).status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(this.#timeAt(this.#parts.clock.now()));
  }

  /** Returns the time of day of a time of the monotonic clock. */
  #timeAt(atMs: number): HrTime {
    const ms = this.#zeroMs + atMs;
    return [Math.floor(ms / 1_000), Math.floor((ms % 1_000) * 1e6)];
  }
}

/** Returns what a machine did for an answer that was over at a time, by the machine's own times. */
function stepsOn(
  { queuedMs, firstTokenMs, totalMs }: EndPayload["timings"],
  loadWaitMs = 0,
  overAtMs: number,
): PastStep[] {
  const tookAtMs = overAtMs - totalMs;
  const firstMs = firstTokenMs ?? totalMs;
  const loadedMs = Math.min(loadWaitMs, firstMs);
  const steps: readonly PastStep[] = [
    ["load", 0, loadedMs],
    ["wait", loadedMs, queuedMs],
    ["prefill", Math.max(loadedMs, queuedMs), firstMs],
    ["decode", firstMs, totalMs],
  ];
  return steps.filter(([, from, to]) => to > from).map(([name, from, to]) => [name, tookAtMs + from, tookAtMs + to]);
}
