import { Fault } from "#shared/fault/fault.ts";
import type { AnswerPlace } from "../jobs/resume-answer.ts";
import type { ModelExchange, InferenceDependencies } from "./endpoint.ts";
import type { ReadRequest } from "./read-request.ts";
import { asksResumable, resumableHeader, resumesAnswer } from "./resumable-answer.ts";
import { readBody, take } from "./run-request.ts";
import { type Keeping, sendAnswer } from "./send-answer.ts";

/** Returns how a new answer is kept: a stream whose client asks for that has numbered events, and outlasts its client. */
export function keepingOf(
  { incoming, reply }: Pick<ModelExchange, "incoming" | "reply">,
  streamed: boolean,
  { timing }: Pick<InferenceDependencies, "timing">,
): Keeping {
  if (!streamed || !asksResumable(incoming.headers)) return {};
  reply.header(resumableHeader, "1");
  return { staysMs: timing.resumableForMs, numberedFrom: 0 };
}

interface ResumedPlace {
  readonly place: AnswerPlace;
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
  { place, asked: given, staysMs }: ResumedPlace,
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
  request.resumes(asked.ceiling);
  const isNumbered = resumesAnswer(headers) || (asked.stream && asksResumable(headers));
  if (isNumbered) reply.header(resumableHeader, "1");
  const run = async (signal: AbortSignal): Promise<void> => {
    await dependencies.resumer.run({ place, keyId: request.key.id, course: request.answer, signal });
  };
  const keeping = {
    staysMs: staysMs ?? dependencies.timing.resumableForMs,
    ...(isNumbered && { numberedFrom: place.event }),
  };
  return sendAnswer(exchange, { asked, run, keeping }, dependencies);
}
