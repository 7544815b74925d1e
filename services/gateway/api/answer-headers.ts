import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { KeyLimits, KeyRecord } from "#shared/keys/key-record.ts";
import type { Log } from "#shared/process/log.ts";
import { stateOf } from "../http/request-state.ts";
import { limitHeaders } from "../limits/limit-responses.ts";
import type { Limits, Standing } from "../limits/limits.ts";

declare module "../http/request-state.ts" {
  interface RequestState {
    /** The key's rate-limit status when the request was admitted. */
    standing?: Standing;
  }
}

/** Notes the rate-limit status of a request's key; each answer to the request has it in its headers. */
export function noteRateLimits(request: FastifyRequest, standing: Standing): void {
  stateOf(request).standing = standing;
}

/**
 * Returns the noted rate-limit headers for an answer that is written past the framework: a name, its value, the next
 * name.
 */
export function rateLimitLines(request: FastifyRequest): string[] {
  const { standing } = stateOf(request);
  return standing === undefined ? [] : Object.entries(limitHeaders(standing)).flat();
}

/**
 * Adds rate-limit headers to the answers of a scope that the framework writes. These are answers that cost nothing, and
 * answers to failed requests.
 */
export function addRateLimitHeaders(
  scope: FastifyInstance,
  { limits, log }: { readonly limits: Limits; readonly log: Pick<Log, "warn"> },
): void {
  const ask = async (reply: FastifyReply, { id: keyId, limits: limited }: LimitedKey): Promise<void> => {
    try {
      reply.headers(limitHeaders(await limits.standing({ keyId, limits: limited })));
    } catch (error) {
      // An answer without these headers is better than none.
      log.warn({ err: error, key: keyId }, "how a key stands cannot be told");
    }
  };
  scope.addHook("onSend", (request, reply, payload, done) => {
    const { standing, caller } = stateOf(request);
    if (standing !== undefined) reply.headers(limitHeaders(standing));
    else if (caller !== undefined && hasRates(caller.key)) return ask(reply, caller.key);
    done(null, payload);
    return undefined;
  });
}

type LimitedKey = KeyRecord & { readonly limits: KeyLimits };

function hasRates(key: KeyRecord): key is LimitedKey {
  return key.limits?.requestsPerMinute !== undefined || key.limits?.tokensPerMinute !== undefined;
}

const nameCharactersMax = 100;

/**
 * Returns the names of ignored fields as a header value, or undefined when there are none. The client chooses the
 * names, so they are encoded.
 */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  return namedShortly(ignored.map((name) => encode(name.slice(0, nameCharactersMax))));
}

function encode(name: string): string {
  return name.replace(/[^\w.[\]-]+/g, (odd) => `%${Buffer.from(odd).toString("hex").match(/../g)?.join("%") ?? ""}`);
}

const bytesMax = 1_024;

/**
 * Joins names into a header value: as many as fit into `bytesMax`, then the number of the others. Clients refuse long
 * headers.
 */
export function namedShortly(names: readonly string[]): string {
  let value = "";
  for (const [place, name] of names.entries()) {
    const next = place === 0 ? name : `${value},${name}`;
    if (next.length > bytesMax)
      return value === "" ? `${names.length} names` : `${value},+${names.length - place} more`;
    value = next;
  }
  return value;
}
