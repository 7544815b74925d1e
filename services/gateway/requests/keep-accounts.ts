import { Fault } from "#shared/fault/fault.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Book } from "#shared/records/book.ts";
import { EarlyLimits } from "./limit-responses.ts";
import { RecordedRefusals } from "./record-request.ts";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { callerOf } from "../keys/authenticate.ts";
import { sinceArrivalMs } from "../http/timed-response.ts";
import type { AnswerResumer } from "../jobs/resume-answer.ts";
import { KeyedCounts } from "../http/bound-uploads.ts";
import { lastEventHeader, resumedPosition } from "./resumable-answer.ts";
import { adoptError, type BodyLimit } from "../http/answer-faults.ts";
import { seatAgainMs } from "./admit.ts";
import { ModelRequest, type RequestParts } from "./request.ts";

declare module "../http/request-state.ts" {
  interface RequestState {
    /** The request to a model. */
    asked?: ModelRequest;
    /** Called when the body of a request was read that resumes an answer. */
    resumeRead?: () => void;
  }
}

/**
 * Keeps an account of every request to a scope of routes, from the proof of its key until its answer closes. A request
 * ends here, before its body is read, if its key is known to be over its rate or its concurrency.
 */
export function keepAccounts(
  scope: FastifyInstance,
  dependencies: Omit<RequestParts, "early" | "recorded"> &
    BodyLimit & { readonly keepsRequests: boolean; readonly resumer: Pick<AnswerResumer, "machineOf"> },
): void {
  const { clock, keepsRequests } = dependencies;
  const early = new EarlyLimits(clock);
  const resuming = new KeyedCounts();
  const recorded = keepsRequests ? new RecordedRefusals(clock) : undefined;
  const requestParts = { ...dependencies, early, recorded };
  scope.addHook("onRequest", (request, reply, done) => {
    const arrivedAtMs = clock.now() - sinceArrivalMs(reply.raw);
    const { key, books, leaving } = callerOf(request);
    const { path, trace } = request.state;
    const from = { address: request.ip, path, headers: request.headers, trace };
    const asked = new ModelRequest({ id: request.id, key, books, from, leaving, arrivedAtMs }, requestParts);
    const state = request.state;
    state.asked = asked;
    state.reporter = asked;
    closeWith(reply, () => asked.close(reply.statusCode));
    // An answer that is resumed was admitted before, and may still have its seat.
    const { endpoint } = request.routeOptions.config;
    if (endpoint?.isResumable === true && request.headers[lastEventHeader] !== undefined)
      return enterResume(request, reply, { ...dependencies, resuming });
    const fault = early.judge(books);
    // A client's next request may overtake the close of the connection that it has just left.
    if (fault?.code === "concurrency_limit_exceeded") return judgeAgain(request, reply, { clock, early });
    if (fault === undefined) beginEarly(reply, books, early);
    done(fault);
    return undefined;
  });
  scope.addHook("onError", async (request, _reply, error) => {
    request.state.asked?.endedIn(adoptError(error, dependencies).code);
  });
}

async function judgeAgain(
  request: FastifyRequest,
  reply: FastifyReply,
  { clock, early }: { readonly clock: Clock; readonly early: EarlyLimits },
): Promise<void> {
  const { books, leaving } = callerOf(request);
  await sleep(clock, seatAgainMs, leaving.signal);
  const fault = early.judge(books);
  if (fault !== undefined) throw fault;
  beginEarly(reply, books, early);
}

function beginEarly(reply: FastifyReply, books: readonly Book[], early: EarlyLimits): void {
  const counted = books.filter(({ limits }) => limits.concurrency !== undefined);
  if (counted.length > 0) closeWith(reply, early.begin(counted));
}

/** Bodies of requests that resume an answer, which a key sends at once. The others wait, and are not read until then. */
const resumesReadMax = 4;
const resumeAgainMs = 20;

/** Lets a request in that resumes an answer, if its machine is there, as soon as few others of its key are read. */
async function enterResume(
  request: FastifyRequest,
  reply: FastifyReply,
  { clock, resumer, resuming }: { clock: Clock; resumer: Pick<AnswerResumer, "machineOf">; resuming: KeyedCounts },
): Promise<void> {
  resumer.machineOf(resumedPosition(request.headers));
  const { key, leaving } = callerOf(request);
  while (resuming.of(key.id) >= resumesReadMax) await sleep(clock, resumeAgainMs, leaving.signal);
  leaving.signal.throwIfAborted();
  resuming.add(key.id, 1);
  const { promise, resolve } = Promise.withResolvers<void>();
  void promise.then(() => resuming.add(key.id, -1));
  request.state.resumeRead = resolve;
  closeWith(reply, resolve);
}

/** Returns the request to a model that came by an HTTP request. */
export function requestOf(request: FastifyRequest): ModelRequest {
  const { asked } = request.state;
  if (asked === undefined) throw Fault.from(new Error("a route that asks models was reached without its request"));
  return asked;
}

/** Runs `close` when the answer closes, or at once if the client has already left. */
function closeWith(reply: FastifyReply, close: () => void): void {
  if (reply.raw.closed) close();
  else reply.raw.once("close", close);
}
