import { Fault } from "#shared/fault/fault.ts";
import type { AnswerJob, AnswerPosition } from "../jobs/resume-answer.ts";
import { callerOf } from "../keys/authenticate.ts";
import type { Endpoint, ModelExchange, InferenceDependencies } from "./endpoint.ts";
import type { ReadRequest } from "./read-request.ts";
import { pricesOf } from "./request-prices.ts";
import { asksResumable, NumberedEvents, resumableHeader, resumesAnswer, staying } from "./resumable-answer.ts";
import { readBody, take } from "./run-request.ts";
import { sendAnswer, type Sending } from "./send-answer.ts";

/** How an answer is kept for its client. */
interface Keeping {
  /** Time for which the job goes on without its client. */
  readonly staysMs: number;
  /** The number of the last event that the client has; undefined if events have no ids. */
  readonly numberedFrom?: number | undefined;
  /** Called when a machine has the job, with its whole body. */
  readonly given?: (job: AnswerJob) => void;
}

/** Sends an answer that outlasts its client. It is still counted as one of this request. */
function sendKept(
  exchange: ModelExchange,
  sending: Sending,
  { staysMs, numberedFrom, given }: Keeping,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { endpoint, incoming, request, leaving } = exchange;
  leaving.signal.throwIfAborted();
  if (sending.made !== undefined) request.work.canBeResumed(sending.made, given);
  const stay = staying(leaving.signal, staysMs);
  const ended = callerOf(incoming).begin?.(stay);
  const numbered = numberedFrom === undefined ? endpoint : numberedFromEvent(endpoint, numberedFrom);
  const sent = sendAnswer({ ...exchange, endpoint: numbered, leaving: stay }, sending, dependencies);
  const over = sent.finally(() => ended?.());
  request.staysUntil(over, stay);
  return over;
}

/** Returns an endpoint whose streams have events with ids, from the one after `skipped` on. */
function numberedFromEvent(endpoint: Endpoint, skipped: number): Endpoint {
  return {
    ...endpoint,
    rendering(asked, request) {
      const rendering = endpoint.rendering(asked, request);
      const render: typeof rendering.render = (head, offer) =>
        new NumberedEvents(rendering.render(head, offer), offer, skipped);
      return { ...rendering, render };
    },
  };
}

/** Sends a new answer as it is kept: a stream whose client asks for that has numbered events, and outlasts its client. */
export function sendResumable(
  exchange: ModelExchange,
  sending: Sending,
  dependencies: InferenceDependencies,
  once?: Keeping,
): Promise<void> {
  const { incoming, reply } = exchange;
  const isNumbered = sending.asked.stream && asksResumable(incoming.headers);
  if (isNumbered) reply.header(resumableHeader, "1");
  const numbered = isNumbered ? { staysMs: dependencies.timing.resumableForMs, numberedFrom: 0 } : undefined;
  if (once === undefined && numbered === undefined) return sendAnswer(exchange, sending, dependencies);
  return sendKept(exchange, sending, { staysMs: 0, ...once, ...numbered }, dependencies);
}

interface ResumedRequest {
  readonly position: AnswerPosition;
  /** The request as it was read, if it was. */
  readonly asked?: ReadRequest | undefined;
  /** The time for which the job goes on without its client. */
  readonly staysMs?: number;
}

/**
 * Sends an answer that an earlier request asked for, with the body of that request. It was admitted then, so it is not
 * admitted again. Its machine judges whether the answer is of its key.
 */
export async function resumeAnswer(
  exchange: ModelExchange,
  { position, asked: given, staysMs }: ResumedRequest,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { incoming, reply, request, leaving } = exchange;
  const { headers } = incoming;
  const asked = given ?? (await readBody(exchange, dependencies));
  incoming.state.resumeRead?.();
  if (!asked.stream && resumesAnswer(headers))
    throw new Fault("invalid_value", { message: "An answer is resumed as a stream.", param: "stream" });
  take(exchange, { ...asked, body: new Uint8Array() }, dependencies);
  leaving.signal.throwIfAborted();
  const { targets } = request.work;
  request.resumes(asked.ceiling, pricesOf({ promptTokens: 0, requests: 0, targets }, dependencies.prices.table));
  const isNumbered = resumesAnswer(headers) || (asked.stream && asksResumable(headers));
  if (isNumbered) reply.header(resumableHeader, "1");
  const run = async (signal: AbortSignal): Promise<void> => {
    await dependencies.resumer.run({ position, keyId: request.key.id, course: request.answer, signal });
  };
  const keeping = {
    staysMs: staysMs ?? dependencies.timing.resumableForMs,
    numberedFrom: isNumbered ? position.event : undefined,
  };
  return sendKept(exchange, { asked, run }, keeping, dependencies);
}
