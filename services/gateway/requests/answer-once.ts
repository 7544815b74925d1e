import { Fault } from "#shared/fault/fault.ts";
import { sleep } from "#shared/process/clock.ts";
import type { AnswerPlace, Wait } from "../jobs/resume-answer.ts";
import type { ClaimName } from "../jobs/answer-claims.ts";
import type { ModelExchange, InferenceDependencies } from "./endpoint.ts";
import { digestOf, lostJob, OnceClaim, replayedHeader } from "./made-once.ts";
import type { ReadRequest } from "./read-request.ts";
import { keepingOf, resumeAnswer } from "./resume-request.ts";
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
export async function answerOnce(
  exchange: ModelExchange,
  name: ClaimName,
  dependencies: InferenceDependencies,
): Promise<void> {
  const { endpoint, incoming, request, leaving } = exchange;
  const { body } = incoming;
  const digest = digestOf(endpoint.kind, body ?? "");
  const claim = new OnceClaim(name, { owner: request.id, digest }, dependencies);
  const asked = await readBody(exchange, dependencies);
  const { ends, adaptFault } = endpoint.rendering(asked, request.id);
  request.isMadeOnce();
  const writer = streamOf({ ...exchange, ends }, dependencies);
  const wait = waitFor(exchange, { streamed: asked.stream, tell: (comment) => writer.tell(comment) }, dependencies);
  const repeat = new Repeat(exchange, { claim, asked, wait, bodyBytes: body?.byteLength ?? 0 }, dependencies);
  leaving.signal.addEventListener("abort", () => claim.leave(), { once: true });
  try {
    for (let left = repeatsMax; !(await repeat.answer(left === 0)); left -= 1);
  } catch (thrown) {
    if (!writer.begun) throw thrown;
    failStream(exchange, { writer, fault: adaptFault(Fault.from(thrown)), log: dependencies.log });
  } finally {
    claim.leave();
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

interface Repeated {
  readonly claim: OnceClaim;
  readonly asked: ReadRequest;
  readonly wait: Wait;
  readonly bodyBytes: number;
}

/** A request with a name: it makes the answer, or joins the one that is made. */
class Repeat {
  readonly #exchange: ModelExchange;
  readonly #claim: OnceClaim;
  readonly #wait: Wait;
  readonly #bodyBytes: number;
  readonly #dependencies: InferenceDependencies;
  #asked: ReadRequest | undefined;

  constructor(
    exchange: ModelExchange,
    { claim, asked, wait, bodyBytes }: Repeated,
    dependencies: InferenceDependencies,
  ) {
    this.#exchange = exchange;
    this.#claim = claim;
    this.#asked = asked;
    this.#wait = wait;
    this.#bodyBytes = bodyBytes;
    this.#dependencies = dependencies;
  }

  /** Makes the answer or joins it. Returns false if its machine has to be looked for again. */
  async answer(isLast: boolean): Promise<boolean> {
    const { request, reply } = this.#exchange;
    const claim = this.#claim;
    const place = await this.#place();
    try {
      await (place === undefined ? this.#make() : this.#join(place));
    } catch (thrown) {
      const { code } = Fault.from(thrown);
      const isMissing = place !== undefined && code === "answer_not_found";
      const isAway = place !== undefined && code === "agent_offline";
      const { machine } = isMissing ? place : request.answer;
      if (!isAway && !claim.outlasts(code)) await claim.release(machine);
      if (isLast || !(isMissing || isAway)) throw thrown;
      reply.removeHeader(replayedHeader);
      return false;
    }
    const { outcome, hasMoved, answer } = request;
    if (!hasMoved && claim.outlasts(outcome)) return true;
    await (outcome === "ok" && !hasMoved ? claim.made() : claim.release(answer.machine));
    return true;
  }

  /** Waits for the turn. Returns the place of the answer that another request made; undefined if this one is to make it. */
  async #place(): Promise<AnswerPlace | undefined> {
    const { incoming, request } = this.#exchange;
    const { arriving } = incoming.state;
    arriving?.grow(this.#bodyBytes);
    try {
      const taken = await this.#claim.take(this.#wait);
      const { resumer } = this.#dependencies;
      const isGone = taken !== undefined && (taken.job === lostJob || !(await resumer.isThere(taken, this.#wait)));
      if (isGone) request.isMadeOnce(taken.machine);
      return isGone ? undefined : taken;
    } finally {
      arriving?.leave();
    }
  }

  #make(): Promise<void> {
    const { timing } = this.#dependencies;
    const asked = this.#asked;
    // The run alone keeps the body while the answer is made.
    this.#asked = undefined;
    const given = (place: Omit<AnswerPlace, "event">): void => void this.#claim.placed(place);
    return runRequest(this.#exchange, this.#dependencies, {
      asked,
      keeps: ({ stream }) => ({
        staysMs: timing.onceForMs,
        ...keepingOf(this.#exchange, stream, this.#dependencies),
        given,
      }),
    });
  }

  #join(place: AnswerPlace): Promise<void> {
    this.#exchange.reply.header(replayedHeader, "true");
    const { timing } = this.#dependencies;
    return resumeAnswer(this.#exchange, { place, asked: this.#asked, staysMs: timing.onceForMs }, this.#dependencies);
  }
}
