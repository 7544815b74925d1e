import type { Log } from "#shared/process/log.ts";
import { moneyText } from "#shared/money/money.ts";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import type { Resumable } from "#shared/protocol/frame-payload.ts";
import { addReplyHeaders, TimedResponse, writeWhole } from "../http/timed-response.ts";
import { logFieldsOf } from "../http/request-state.ts";
import { StreamWriter } from "../jobs/write-answer.ts";
import { CollectedAnswer } from "../jobs/collect-answer.ts";
import type { AnswerRendering, AnswerWriter, StreamEnds } from "../jobs/answer-parts.ts";
import { DeliveredAnswer } from "../jobs/continue-answer.ts";
import { callerOf } from "../keys/authenticate.ts";
import { allow } from "./allow.ts";
import type { ModelExchange, InferenceDependencies, Rendering } from "./endpoint.ts";
import { toldCost } from "./booked-tokens.ts";
import { nameIgnored } from "./ignored-fields.ts";
import { rateLimitLines } from "./limit-responses.ts";
import type { ReadRequest } from "./read-request.ts";

/** An answer to be sent. */
export interface Sending {
  readonly asked: ReadRequest;
  /** The name of a new answer; undefined for one that a machine has already. */
  readonly made?: Resumable | undefined;
  /** Runs the job that makes the answer. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** Names the limit of the key that ended an answer: in the headers of a whole answer, in a comment of a stream. */
const limitHeader = "x-trunkline-limit";

/** Response header that names the machine that gave the answer, or failed to. */
const machineHeader = "x-trunkline-machine";
/** Response header that names the model that gave the answer, if a route led to it. */
const modelHeader = "x-trunkline-model";

/** Tells the cost of a whole answer. */
const costHeader = "x-trunkline-cost";

/**
 * Runs the job of a request and sends its answer. A failure before its first piece is thrown, and becomes an answer with a
 * status. A later failure is reported inside the stream.
 */
export function sendAnswer(
  exchange: ModelExchange,
  sending: Sending,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { endpoint, request, leaving } = exchange;
  const { asked } = sending;
  leaving.signal.throwIfAborted();
  const rendering = endpoint.rendering(asked, {
    id: request.id,
    costOf: (usage) => toldCost(request, usage, dependencies),
  });
  return (asked.stream ? sendStream : sendWhole)(exchange, { ...sending, rendering }, dependencies);
}

interface Rendered extends Sending {
  readonly rendering: Rendering;
}

/** Sends an answer piece by piece. */
async function sendStream(
  exchange: ModelExchange,
  sending: Rendered,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { reply, request } = exchange;
  const { ends, adaptFault, keep } = sending.rendering;
  const writer = streamOf({ reply, request, ends }, dependencies);
  const tellLimit = (limit: string): void => writer.tell(`${limitHeader}: ${limit}`);
  try {
    await runWithinLimits(exchange, { ...sending, writer, tellLimit }, dependencies);
  } catch (thrown) {
    const fault = adaptFault(Fault.from(thrown));
    // The request may still be answered: its caller makes an answer anew that is gone.
    if (!writer.begun && !isBrokenOff(fault)) throw fault;
    return failStream(exchange, { writer, fault, log: dependencies.log });
  }
  // An answer that is to be kept is there before its client gets the last byte, which says so if it could not be kept.
  const change = await keep?.(request.key.id, dependencies);
  if (change !== undefined) writer.changeLast(change);
  await request.ended(200);
  reply.hijack();
  if (!reply.raw.destroyed) writer.end();
}

const jsonMedia = "application/json; charset=utf-8";

/** Sends an answer at once when it is complete. */
async function sendWhole(
  exchange: ModelExchange,
  sending: Rendered,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { reply, request, leaving } = exchange;
  const { adaptFault, keep, media = jsonMedia } = sending.rendering;
  const writer = new CollectedAnswer({
    response: reply.raw,
    onAccept: (machine, model) => nameSource({ reply, request }, machine, model),
    onGrow: (bytes) => {
      if (reply.raw instanceof TimedResponse) reply.raw.keptBytes = bytes;
    },
    onTooLarge: (fault) => leaving.abort(fault),
  });
  const tellLimit = (limit: string): void => void reply.header(limitHeader, limit);
  try {
    await runWithinLimits(exchange, { ...sending, writer, tellLimit }, dependencies);
  } catch (thrown) {
    const fault = adaptFault(Fault.from(thrown));
    if (!isBrokenOff(fault)) throw fault;
    request.endedIn(fault.code);
    reply.hijack();
    reply.raw.destroy();
    return;
  }
  const change = await keep?.(request.key.id, dependencies);
  if (change !== undefined) writer.changeLast(change);
  await request.ended(200);
  const lines = rateLimitLines(reply.request);
  const { cost } = request.facts.answer ?? {};
  if (cost !== undefined) lines.push(costHeader, moneyText(cost, dependencies.prices.currency));
  lines.push("content-type", media);
  writeWhole(reply, lines, writer.bytes());
}

/**
 * Runs the job of a request to its end, or to the end of what the limits of its key have left. The answer then ends as
 * at `max_tokens`, after the limit was told.
 */
async function runWithinLimits(
  exchange: ModelExchange,
  { run, made, rendering, writer, tellLimit }: Rendered & { writer: AnswerWriter; tellLimit: (limit: string) => void },
  dependencies: InferenceDependencies,
): Promise<void> {
  const { incoming, request, leaving } = exchange;
  const bound = allow(request, leaving, dependencies.settlements);
  request.answer.following(writer, {
    streamed: request.work.streamed,
    render: rendererOf(exchange, rendering, made),
    bound,
    delivered: deliveredOf(exchange, dependencies),
  });
  try {
    await run(leaving.signal);
  } catch (thrown) {
    const limit = bound?.spent;
    if (limit === undefined) throw thrown;
    incoming.state.reason = `the answer ended at a limit of its key (${limit})`;
    tellLimit(limit);
    request.endShort(limit);
  }
}

/** Returns what is kept of an answer with which another machine may go on; undefined for others. */
function deliveredOf(
  { request }: ModelExchange,
  { continuations }: InferenceDependencies,
): DeliveredAnswer | undefined {
  const { kind, streamed } = request.work;
  const mayContinue = streamed && (kind === "chat" || kind === "complete") && request.key.continues !== false;
  return mayContinue && continuations !== undefined ? new DeliveredAnswer(continuations) : undefined;
}

/** Returns the rendering of an answer in the words of its client. */
function rendererOf(
  { reply, request }: ModelExchange,
  rendering: Rendering,
  made: Resumable | undefined,
): AnswerRendering["render"] {
  return (by, offer, resumed) => {
    const { ignored } = request.work;
    if (ignored.length > 0 || rendering.unheldBy !== undefined)
      nameIgnored(reply, [...ignored, ...(rendering.unheldBy?.(offer) ?? [])]);
    const { answer: id = "", created: createdSeconds = 0 } = resumed ?? made ?? {};
    return rendering.render({ id, createdSeconds, model: request.asked?.routed ?? by }, offer);
  };
}

/** Opens the stream of an answer. Its status line is written once, by whichever writer of the response begins first. */
export function streamOf(
  { reply, request, ends }: Pick<ModelExchange, "reply" | "request"> & { readonly ends: StreamEnds },
  { timing }: Pick<InferenceDependencies, "timing">,
): StreamWriter {
  return new StreamWriter({
    response: reply.raw,
    ends,
    timing,
    headers: () => {
      const lines = rateLimitLines(reply.request);
      addReplyHeaders(lines, reply);
      return lines;
    },
    onAccept: (machine, model) => nameSource({ reply, request }, machine, model),
    // The client is left, and not an answer that outlasts it.
    onSlow: (fault) => callerOf(reply.request).leaving.abort(fault),
  });
}

/** Ends a stream that has begun with the event of its fault, and breaks that of a client that has left. */
export function failStream(
  { reply, request }: Pick<ModelExchange, "reply" | "request">,
  { writer, fault, log }: { readonly writer: StreamWriter; readonly fault: Fault; readonly log: Log },
): void {
  request.endedIn(fault.code);
  reply.request.state.reason = fault.reason;
  const fields = { ...logFieldsOf(reply.request), code: fault.code, internal: fault.reason };
  if (faultEntry(fault.code).status < 500) log.debug(fields, "stream ended by its client or its key");
  else log.warn(fields, "stream failed");
  reply.hijack();
  if (isBrokenOff(fault)) reply.raw.destroy();
  else writer.fail(fault);
}

/**
 * True if the connection breaks without an error. A client that is still there when another request of its own takes its
 * answer over asks again: that request may be an earlier one, which was on its way for longer.
 */
function isBrokenOff({ code }: Fault): boolean {
  return code === "slow_client" || code === "client_closed";
}

/** Names the machine that answers in the headers, and the model if it has another name than the client asked for. */
function nameSource(
  { reply, request }: Pick<ModelExchange, "reply" | "request">,
  machine: string,
  model: string,
): void {
  void reply.header(machineHeader, machine);
  // The characters of a model's id are not bound to those of a header.
  if (request.asked?.routed !== undefined) void reply.header(modelHeader, encodeURI(model));
}
