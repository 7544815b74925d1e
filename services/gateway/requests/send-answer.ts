import type { Log } from "#shared/process/log.ts";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import type { Resumable } from "#shared/protocol/frame-payload.ts";
import { addReplyHeaders, TimedResponse, writeWhole } from "../http/timed-response.ts";
import { logFieldsOf } from "../http/request-state.ts";
import { machineHeader, modelHeader, type StreamEnds, StreamWriter } from "../jobs/write-answer.ts";
import { CollectedAnswer } from "../jobs/collect-answer.ts";
import type { AnswerCourse } from "../jobs/answer-course.ts";
import type { AnswerWriter } from "../jobs/answer-parts.ts";
import { DeliveredAnswer } from "../jobs/continue-answer.ts";
import type { AnswerPlace } from "../jobs/resume-answer.ts";
import { callerOf } from "../keys/authenticate.ts";
import { allow } from "./allow.ts";
import type { ModelExchange, InferenceDependencies, Rendering } from "./endpoint.ts";
import { nameIgnored } from "./ignored-fields.ts";
import { rateLimitLines } from "./limit-responses.ts";
import type { ReadRequest } from "./read-request.ts";
import { NumberedEvents, staying } from "./resumable-answer.ts";

/** How an answer is kept for its client. */
export interface Keeping {
  /** Time for which the job goes on without its client; undefined if it ends with it. */
  readonly staysMs?: number;
  /** The number of the last event that the client has; undefined if events have no ids. */
  readonly numberedFrom?: number;
  /** Called when a machine has the job, with its whole body. */
  readonly given?: (place: Omit<AnswerPlace, "event">) => void;
}

/** An answer to be sent. */
interface Sending {
  readonly asked: ReadRequest;
  /** The name of a new answer; undefined for one that a machine has already. */
  readonly made?: Resumable | undefined;
  /** Runs the job that makes the answer. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  readonly keeping: Keeping;
}

/** Where an answer goes: piece by piece, or at once when it is complete. */
interface Outlet {
  readonly writer: AnswerWriter;
  tellLimit(limit: string): void;
  changeLast(change: (bytes: Uint8Array) => Uint8Array): void;
  /** Ends an answer that failed. Returns false if its fault can still become an answer with a status. */
  fail(fault: Fault): boolean;
  /** Sends the last bytes. */
  end(): void;
}

/** Names the limit of the key that ended an answer: in the headers of a whole answer, in a comment of a stream. */
const limitHeader = "x-trunkline-limit";

/** Runs a request and sends its answer. An answer that outlives its client is still counted as one of this request. */
export function sendAnswer(
  exchange: ModelExchange,
  sending: Sending,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { request, leaving } = exchange;
  leaving.signal.throwIfAborted();
  const sent = send(exchange, sending, dependencies);
  if (sending.keeping.staysMs !== undefined) request.staysUntil(sent);
  return sent;
}

/**
 * Sends an answer. A failure before its first piece is thrown, and becomes an answer with a status. A later failure is
 * reported inside the stream.
 */
async function send(exchange: ModelExchange, sending: Sending, dependencies: InferenceDependencies): Promise<void> {
  const { endpoint, request } = exchange;
  const { asked } = sending;
  const rendering = endpoint.rendering(asked, request.id);
  const outlet = asked.stream ? streamOutlet(exchange, rendering, dependencies) : wholeOutlet(exchange, rendering);
  try {
    await runWithinLimits(exchange, { ...sending, rendering, outlet }, dependencies);
  } catch (thrown) {
    const fault = rendering.adaptFault(Fault.from(thrown));
    if (!outlet.fail(fault)) throw fault;
    return;
  }
  // An answer that is to be kept is there before its client gets the last byte, which says so if it could not be kept.
  const change = await rendering.keep?.(request.key.id, dependencies);
  if (change !== undefined) outlet.changeLast(change);
  await request.ended(200);
  outlet.end();
}

/**
 * Runs the job of a request to its end, or to the end of what the limits of its key have left. The answer then ends as
 * at `max_tokens`, after the limit was told.
 */
async function runWithinLimits(
  exchange: ModelExchange,
  { run, made, keeping, rendering, outlet }: Omit<Sending, "asked"> & { rendering: Rendering; outlet: Outlet },
  dependencies: InferenceDependencies,
): Promise<void> {
  const { incoming, request, leaving } = exchange;
  const { staysMs } = keeping;
  const stay = staysMs === undefined ? leaving : staying(leaving.signal, staysMs);
  const ended = staysMs === undefined ? undefined : callerOf(incoming).begin?.(stay);
  const { bound, spent } = allow(request, stay, dependencies.settlements);
  request.answer.following(outlet.writer, {
    streamed: request.work.streamed,
    render: rendererOf(exchange, { rendering, made, keeping }),
    bound,
    delivered: deliveredOf(exchange, dependencies),
  });
  try {
    await run(stay.signal);
  } catch (thrown) {
    const limit = spent();
    if (limit === undefined) throw thrown;
    incoming.state.reason = `the answer ended at a limit of its key (${limit})`;
    outlet.tellLimit(limit);
    request.endShort(limit);
  } finally {
    ended?.();
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

/** Returns the rendering of an answer in the words of its client, with numbered events where it is kept. */
function rendererOf(
  { reply, request }: ModelExchange,
  { rendering, made, keeping }: Pick<Sending, "made" | "keeping"> & { readonly rendering: Rendering },
): Parameters<AnswerCourse["following"]>[1]["render"] {
  const { numberedFrom } = keeping;
  return (by, offer, resumed) => {
    nameIgnored(reply, [...request.work.ignored, ...(rendering.unheldBy?.(offer) ?? [])]);
    const { answer: id = "", created: createdSeconds = 0 } = resumed ?? made ?? {};
    const renderer = rendering.render({ id, createdSeconds, model: request.asked?.routed ?? by }, offer);
    return numberedFrom === undefined ? renderer : new NumberedEvents(renderer, offer, numberedFrom);
  };
}

/** Opens the stream of an answer. Its status line is written once, by whichever writer of the response begins first. */
export function streamOf(
  { reply, request, leaving, ends }: ModelExchange & { readonly ends: StreamEnds },
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
    onSlow: (fault) => leaving.abort(fault),
  });
}

function streamOutlet(exchange: ModelExchange, { ends }: Rendering, dependencies: InferenceDependencies): Outlet {
  const { reply } = exchange;
  const writer = streamOf({ ...exchange, ends }, dependencies);
  return {
    writer,
    tellLimit: (limit) => writer.tell(`${limitHeader}: ${limit}`),
    changeLast: (change) => writer.changeLast(change),
    fail(fault) {
      // The request may still be answered: its caller makes an answer anew that is gone.
      if (!writer.begun && !isBrokenOff(fault)) return false;
      failStream(exchange, { writer, fault, log: dependencies.log });
      return true;
    },
    end() {
      reply.hijack();
      if (!reply.raw.destroyed) writer.end();
    },
  };
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

const jsonMedia = "application/json; charset=utf-8";

function wholeOutlet({ reply, request, leaving }: ModelExchange, { media = jsonMedia }: Rendering): Outlet {
  const collected = new CollectedAnswer({
    onTooLarge: (fault) => leaving.abort(fault),
    onAccept: (machine, model) => nameSource({ reply, request }, machine, model),
    hasLeft: () => reply.raw.destroyed,
    onGrow: (bytes) => {
      if (reply.raw instanceof TimedResponse) reply.raw.keptBytes = bytes;
    },
  });
  return {
    writer: collected,
    tellLimit: (limit) => void reply.header(limitHeader, limit),
    changeLast: (change) => collected.changeLast(change),
    fail(fault) {
      if (!isBrokenOff(fault)) return false;
      request.endedIn(fault.code);
      reply.hijack();
      reply.raw.destroy();
      return true;
    },
    end() {
      const lines = rateLimitLines(reply.request);
      lines.push("content-type", media);
      writeWhole(reply, lines, collected.bytes());
    },
  };
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
