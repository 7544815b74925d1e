import { Fault } from "#shared/fault/fault.ts";
import { sleep } from "#shared/process/clock.ts";
import type { AnswerJob, AnswerPosition, Wait } from "../jobs/resume-answer.ts";
import type { ModelExchange, InferenceDependencies } from "./endpoint.ts";
import { digestOf, lostJob, AnswerMadeOnce, onceName, replayedHeader } from "./made-once.ts";
import type { ReadRequest } from "./read-request.ts";
import { resumeAnswer, sendResumable } from "./resume-request.ts";
import { readBody, runRequest } from "./run-request.ts";
import { failStream, streamOf } from "./send-answer.ts";

/** Time between two looks for another request or a machine; longer after a while, up to ten times. */
const lookMs = 100;

/** How often a request finds an answer gone before it gives up. */
const repeatsMax = 3;

/**
 * Answers a request whose answer is made once. The first request of the name makes it. Each later one with the same body
 * waits while a client before it is there, and then gets the same answer from its machine.
 */
export async function answerOnce(exchange: ModelExchange, dependencies: InferenceDependencies): Promise<void> {
  const { endpoint, incoming, request, leaving } = exchange;
  const { body, headers } = incoming;
  const name = onceName(headers, request.key.id);
  const digest = digestOf(endpoint.kind, body ?? "");
  const once = new AnswerMadeOnce(name, { owner: request.id, digest }, dependencies);
  const asked = await readBody(exchange, dependencies);
  const { ends, adaptFault } = endpoint.rendering(asked, { id: request.id, costOf: () => undefined });
  request.isMadeOnce();
  const writer = streamOf({ ...exchange, ends }, dependencies);
  const wait = waitFor(exchange, { streamed: asked.stream, tell: (comment) => writer.tell(comment) }, dependencies);
  const repeat = { exchange, dependencies, once, wait, bodyBytes: body?.byteLength ?? 0, asked };
  leaving.signal.addEventListener("abort", () => once.leave(), { once: true });
  try {
    for (let left = repeatsMax; !(await answer(repeat, left === 0)); left -= 1);
  } catch (thrown) {
    if (!writer.begun) throw thrown;
    failStream(exchange, { writer, fault: adaptFault(Fault.from(thrown)), log: dependencies.log });
  } finally {
    once.leave();
  }
}

/** Returns the wait for an earlier request. A stream that waits for long has comments meanwhile. */
function waitFor(
  { reply, leaving }: ModelExchange,
  { streamed, tell }: { readonly streamed: boolean; readonly tell: (comment: string) => void },
  { timing, clock }: InferenceDependencies,
): Wait {
  const sinceMs = clock.now();
  let toldAtMs = sinceMs + timing.statusHeldMs - timing.commentIntervalMs;
  return async () => {
    const nowMs = clock.now();
    if (streamed && nowMs - toldAtMs >= timing.commentIntervalMs) {
      reply.header(replayedHeader, "true");
      tell("waiting for the request that has this Idempotency-Key already");
      toldAtMs = nowMs;
    }
    await sleep(clock, Math.min(Math.max((nowMs - sinceMs) / 10, lookMs), lookMs * 10), leaving.signal);
  };
}

/** A request with a name: it makes the answer, or joins the one that is made. */
interface Repeat {
  readonly exchange: ModelExchange;
  readonly dependencies: InferenceDependencies;
  readonly once: AnswerMadeOnce;
  readonly wait: Wait;
  readonly bodyBytes: number;
  /** The request as it was read, until it runs. */
  asked: ReadRequest | undefined;
}

/** Makes the answer or joins it. Returns false if its machine has to be looked for again. */
async function answer(repeat: Repeat, isLast: boolean): Promise<boolean> {
  const { exchange, once } = repeat;
  const { request, reply } = exchange;
  const position = await positionOf(repeat);
  try {
    await (position === undefined ? make(repeat) : join(repeat, position));
  } catch (thrown) {
    const { code } = Fault.from(thrown);
    const isMissing = position !== undefined && code === "answer_not_found";
    const isAway = position !== undefined && code === "agent_offline";
    const { machine } = isMissing ? position : request.answer;
    if (!isAway && !once.outlasts(code)) await once.release(machine, code);
    if (isLast || !(isMissing || isAway)) throw thrown;
    reply.removeHeader(replayedHeader);
    return false;
  }
  const { outcome, hasMoved } = request;
  if (!hasMoved && once.outlasts(outcome)) return true;
  await (outcome === "ok" && !hasMoved ? once.made() : once.release(request.answer.machine, outcome));
  return true;
}

/** Waits for the turn. Returns the position in the answer that another request made; undefined if this one is to make it. */
async function positionOf({
  exchange,
  dependencies,
  once,
  wait,
  bodyBytes,
}: Repeat): Promise<AnswerPosition | undefined> {
  const { arriving } = exchange.incoming.state;
  arriving?.grow(bodyBytes);
  try {
    const taken = await once.take(wait);
    const isGone = taken !== undefined && (taken.job === lostJob || !(await dependencies.resumer.isThere(taken, wait)));
    if (isGone) exchange.request.isMadeOnce(taken.machine);
    return isGone ? undefined : taken;
  } finally {
    arriving?.leave();
  }
}

function make(repeat: Repeat): Promise<void> {
  const { dependencies, once, asked } = repeat;
  // The run alone keeps the body while the answer is made.
  repeat.asked = undefined;
  const given = (job: AnswerJob): void => void once.madeBy(job);
  const keeping = { staysMs: dependencies.timing.onceForMs, given };
  return runRequest(repeat.exchange, dependencies, {
    asked,
    send: (exchange, sending) => sendResumable(exchange, sending, dependencies, keeping),
  });
}

function join({ exchange, dependencies, asked }: Repeat, position: AnswerPosition): Promise<void> {
  exchange.reply.header(replayedHeader, "true");
  return resumeAnswer(exchange, { position, asked, staysMs: dependencies.timing.onceForMs }, dependencies);
}
