import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { callerOf } from "../keys/prove-callers.ts";
import { stateOf } from "../http/request-state.ts";
import { atClose, sinceArrivalMs } from "../http/timed-response.ts";
import { adoptError, type BodyLimit } from "../http/adopt-error.ts";
import { EarlyLimits } from "../limits/early-limits.ts";
import { RequestAccount, seatAgainMs, type AccountMeans } from "./request-account.ts";

declare module "../http/request-state.ts" {
  interface RequestState {
    /** The account of the request: its admission, its job and its usage. */
    account?: RequestAccount;
  }
}

/**
 * Keeps an account of every request to a scope of routes, from the proof of its key until its answer closes. A request
 * ends here, before its body is read, if its key is known to be over its rate or its concurrency.
 */
export function keepAccounts(scope: FastifyInstance, means: AccountMeans & BodyLimit): void {
  const { clock } = means;
  const early = new EarlyLimits(clock);
  const accountMeans = { ...means, early };
  scope.addHook("onRequest", (request, reply, done) => {
    const arrivedAtMs = clock.now() - sinceArrivalMs(reply.raw);
    const { key } = callerOf(request);
    const account = new RequestAccount({ id: request.id, key, arrivedAtMs }, accountMeans);
    const state = stateOf(request);
    state.account = account;
    state.reporter = account;
    closeWith(reply, () => account.close());
    const fault = early.judge(key);
    // A client's next request may overtake the close of the connection that it has just left.
    if (fault?.code === "concurrency_limit_exceeded") return judgeAgain(request, reply, { clock, early });
    if (fault === undefined) closeWith(reply, early.begin(key));
    done(fault);
    return undefined;
  });
  scope.addHook("onError", async (request, _reply, error) => {
    stateOf(request).account?.endedIn(adoptError(error, means).code);
  });
}

async function judgeAgain(
  request: FastifyRequest,
  reply: FastifyReply,
  { clock, early }: { readonly clock: Clock; readonly early: EarlyLimits },
): Promise<void> {
  const { key, leaving } = callerOf(request);
  await sleep(clock, seatAgainMs, leaving.signal);
  const fault = early.judge(key);
  if (fault !== undefined) throw fault;
  closeWith(reply, early.begin(key));
}

export function accountOf(request: FastifyRequest): RequestAccount {
  const { account } = stateOf(request);
  if (account === undefined)
    throw Fault.from(new Error("a route that is accounted for was reached without an account"));
  return account;
}

/** Runs `close` when the answer closes, or at once if the client has already left. */
function closeWith(reply: FastifyReply, close: () => void): void {
  if (reply.raw.closed) close();
  else atClose(reply.raw, close);
}
