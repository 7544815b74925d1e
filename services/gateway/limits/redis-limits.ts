import { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";
import type { RedisConnection } from "#shared/process/redis-connection.ts";
import { RedisScript } from "#shared/process/redis-script.ts";
import { standingOf, waitMsOf } from "./judge-demand.ts";
import {
  budgetPeriodAt,
  needsSeat,
  seatLivesMs,
  type Admission,
  type Demand,
  type Hold,
  type Limits,
  type Settled,
  type Standing,
} from "./limits.ts";
import { costWithin, tokenRate } from "./rate.ts";
import { admitLua, standingLua } from "./redis-limits-script.ts";

const admitScript = new RedisScript(admitLua);
const standingScript = new RedisScript(standingLua);

/** Numbers come as text, for Redis cuts them off to integers. */
const number = z.string().transform(Number);
const admitReply = z.tuple([
  z.enum(["", "requests", "tokens", "concurrency", "budget", "budget_reserved"]),
  number,
  number,
  number,
  number,
]);
const standingReply = z.tuple([number, number]);

/** Where Redis counts what a key has used of its budget in a period. */
export function spentAt(keyId: string, period: string): string {
  return `spent:${keyId}:${period}`;
}

/**
 * Limits that hold over all gateways together, exact at any moment: each decision is one script in Redis. The books
 * write there what becomes of what was admitted.
 */
export class RedisLimits implements Limits {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, "wall">;
  readonly #seatLivesMs: number;

  constructor(redis: RedisConnection, options: { readonly clock: Pick<Clock, "wall">; readonly seatLivesMs?: number }) {
    this.#redis = redis;
    this.#clock = options.clock;
    this.#seatLivesMs = options.seatLivesMs ?? seatLivesMs;
  }

  async admit(demand: Demand, ended: readonly Settled[] = []): Promise<Admission> {
    const { keyId, limits, seat, tokens } = demand;
    const wallMs = this.#clock.wall();
    const period = limits.budget && budgetPeriodAt(limits.budget.per, wallMs);
    const asked = JSON.stringify({
      keyId,
      limits,
      seat,
      tokens,
      needsSeat: needsSeat(limits),
      seatLivesMs: this.#seatLivesMs,
      spentAt: period && spentAt(keyId, period.name),
      ended: needsSeat(limits) ? ended.map(({ hold, usedTokens }) => ({ seat: hold.seat, usedTokens })) : [],
    });
    const reply = await admitScript.run(this.#redis, "admit a request", asked);
    const [by, requestsUsed, tokensUsed, budgetTokens, spentByAll] = admitReply.parse(reply);
    const spent = limits.budget && spentByAll;
    const used = { requestsUsed, tokensUsed };
    const standing = standingOf(limits, used);
    if (by !== "") {
      const budgetEndsInMs = period === undefined ? 0 : period.endsAtMs - wallMs;
      return {
        outcome: "refused",
        by,
        waitMs: waitMsOf({ by, tokens, limits, used, budgetEndsInMs }),
        standing,
        spent,
      };
    }
    const { tokensPerMinute } = limits;
    const reserved = tokensPerMinute === undefined ? 0 : costWithin(tokenRate(tokensPerMinute), tokens);
    const hold: Hold = { keyId, limits, seat, tokens: reserved, budgetTokens, kept: "shared" };
    return { outcome: "admitted", hold, standing, spent };
  }

  async standing({ keyId, limits }: Pick<Demand, "keyId" | "limits">): Promise<Standing> {
    const asked = [keyId, JSON.stringify(limits)];
    const reply = await standingScript.run(this.#redis, "tell how a key stands", ...asked);
    const [requestsUsed, tokensUsed] = standingReply.parse(reply);
    return standingOf(limits, { requestsUsed, tokensUsed });
  }
}
