import type { FastifyInstance, FastifyReply } from "fastify";
import type { Log } from "#shared/process/log.ts";
import { callerIfProven } from "../access/caller.ts";
import { limitHeaders } from "../limits/limit-headers.ts";
import type { Limits, Standing } from "../limits/limits.ts";

/** Says in the headers of an answer how its key stands with its limits. */
export function tellStanding(reply: FastifyReply, standing: Standing): void {
  reply.headers(limitHeaders(standing));
}

/** Every other answer of a scope says it too: those that cost nothing, and those to requests that came to nothing. */
export function tellStandingAlways(
  scope: FastifyInstance,
  { limits, log }: { readonly limits: Limits; readonly log: Pick<Log, "warn"> },
): void {
  scope.addHook("onSend", async (request, reply) => {
    const key = callerIfProven(request)?.key;
    const limited = key?.limits;
    if (limited?.requestsPerMinute === undefined && limited?.tokensPerMinute === undefined) return;
    const isTold = Object.keys(reply.getHeaders()).some((name) => name.startsWith("x-ratelimit-"));
    if (key === undefined || isTold) return;
    try {
      tellStanding(reply, await limits.standing({ keyId: key.id, limits: limited }));
    } catch (error) {
      // An answer without these headers is better than none.
      log.warn({ err: error, key: key.id }, "how a key stands cannot be told");
    }
  });
}
