import type { FastifyInstance, FastifyReply } from "fastify";
import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
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
  const ask = async (reply: FastifyReply, { id: keyId, limits: limited }: LimitedKey): Promise<void> => {
    try {
      tellStanding(reply, await limits.standing({ keyId, limits: limited }));
    } catch (error) {
      // An answer without these headers is better than none.
      log.warn({ err: error, key: keyId }, "how a key stands cannot be told");
    }
  };
  scope.addHook("onSend", (request, reply, payload, done) => {
    const key = callerIfProven(request)?.key;
    if (key !== undefined && hasRates(key) && !isTold(reply)) return ask(reply, key);
    done(null, payload);
    return undefined;
  });
}

type LimitedKey = KeyRecord & { readonly limits: KeyLimits };

function hasRates(key: KeyRecord): key is LimitedKey {
  return key.limits?.requestsPerMinute !== undefined || key.limits?.tokensPerMinute !== undefined;
}

function isTold(reply: FastifyReply): boolean {
  return reply.hasHeader("x-ratelimit-limit-requests") || reply.hasHeader("x-ratelimit-limit-tokens");
}
