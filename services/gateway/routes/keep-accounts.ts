import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { callerOf } from "../access/caller.ts";
import { stateOf } from "../edge/request-state.ts";
import { atClose, sinceArrivalMs } from "../edge/timed-response.ts";
import { adoptError, type BodyLimit } from "../intake/adopt-error.ts";
import { RequestAccount, type AccountMeans } from "../settlement/request-account.ts";

/** Keeps an account of every request to a scope of routes, from the proof of its key until nothing more is sent of it. */
export function keepAccounts(scope: FastifyInstance, means: AccountMeans & BodyLimit): void {
  scope.addHook("onRequest", (request, reply, done) => {
    const arrivedAtMs = means.clock.now() - sinceArrivalMs(reply.raw);
    const account = new RequestAccount({ id: request.id, key: callerOf(request).key, arrivedAtMs }, means);
    stateOf(request).account = account;
    closeWith(reply, account);
    done();
  });
  scope.addHook("onError", async (request, _reply, error) => {
    stateOf(request).account?.endedIn(adoptError(error, means).code);
  });
}

export function accountOf(request: FastifyRequest): RequestAccount {
  const { account } = stateOf(request);
  if (account === undefined)
    throw Fault.from(new Error("a route that is accounted for was reached without an account"));
  return account;
}

/** The client may have left before. */
function closeWith(reply: FastifyReply, account: RequestAccount): void {
  if (reply.raw.closed) account.close();
  else atClose(reply.raw, () => account.close());
}
