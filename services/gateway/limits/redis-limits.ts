import { z } from "zod";
import { budgetPeriods } from "#shared/admin/key-terms.ts";
import { Fault } from "#shared/fault/fault.ts";
import { gatewayIsThereForMs } from "#shared/records/site-gateways.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { RedisConnection, RedisScript } from "#shared/process/redis-connection.ts";
import { keptRequestsDefault, type KeptRequests } from "#shared/requests/request-records.ts";
import { madeOf, usageInRedis, type UsageRow } from "#shared/usage/usage.ts";
import {
  budgetPeriodAt,
  drainedUnits,
  growthTokens,
  judgingLimits,
  limitStatusOf,
  needsSeat,
  waitMsOf,
} from "./judge-demand.ts";
import {
  seatLivesMs,
  type Admission,
  type Charge,
  type Demand,
  type Growth,
  type Reservation,
  type Limits,
  type LimitsBook,
  type LimitStatus,
  type Refusal,
  type RunningUsage,
  type Settled,
  type Settlement,
} from "./limits.ts";
import type { LocalLimits } from "./local-limits.ts";
import { settlementLua } from "./settlement-lua.ts";
import type { Settlements } from "./settlements.ts";

/** An empty key, to which the connection adds its prefix. */
const prefixOnly = "";

/** The reply to a settlement: the number of gateways, both tokens of each reservation that grows, and the decision on each demand. */
type SettleReply = readonly [
  gateways: number,
  grants: readonly (readonly [number, number])[],
  replies: readonly AdmitReply[],
];
type AdmitReply = readonly [by: Refusal | "", requests: string, tokens: string, spent: number, budgetTokens: number];
const limitStatusReply = z.tuple([z.array(z.string().nullable()), z.tuple([z.coerce.number(), z.coerce.number()])]);

/** Returns the Redis key that counts the tokens that an API key used in a period. */
export function spentAt(keyId: string, period: string): string {
  return `spent:${keyId}:${period}`;
}

interface BookOptions {
  readonly clock: Pick<Clock, "wall">;
  readonly kept?: KeptRequests;
  readonly seatLivesMs?: number;
  readonly isThereForMs?: number;
}

/** A gateway is noted this often within the time for which it counts as present. Absent gateways are looked for then. */
const notedTimes = 15;
const notNoted = { gateway: "", wallMs: -Infinity };

/** The book of all gateways together, exact at any moment. */
export class RedisLimitsBook implements LimitsBook {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, "wall">;
  readonly #notedForMs: number;
  readonly #settle: RedisScript<SettleReply>;
  /** The latest gateway that was noted as present. A Redis that did not answer may have lost the note. */
  #noted = notNoted;

  constructor(redis: RedisConnection, options: BookOptions) {
    const { clock, kept = keptRequestsDefault, isThereForMs = gatewayIsThereForMs } = options;
    const terms = { seatLivesMs, ...options, isThereForMs, requestsMax: kept.max, requestsKeptMs: kept.ms };
    this.#redis = redis;
    this.#clock = clock;
    this.#notedForMs = isThereForMs / notedTimes;
    this.#settle = redis.script(settlementLua(terms), 1);
  }

  async limitStatus({ keyId, limits }: Pick<Demand, "keyId" | "limits">): Promise<LimitStatus> {
    const replies = await this.#redis.pipeline("tell how a key stands", (batch) =>
      batch.hmget(`limits:${keyId}`, "requests", "requestsAt", "tokens", "tokensAt").time(),
    );
    const [kept, [seconds, microseconds]] = limitStatusReply.parse(replies);
    const [requests = 0, requestsAtMs = 0, tokens = 0, tokensAtMs = 0] = kept.map(Number);
    const nowMs = seconds * 1_000 + microseconds / 1_000;
    const { requestsPerMinute: requestsLimit = 1, tokensPerMinute: tokensLimit = 1 } = limits;
    return limitStatusOf(limits, {
      requests: Math.min(drainedUnits(requests, requestsLimit, nowMs - requestsAtMs), requestsLimit),
      tokens: drainedUnits(tokens, tokensLimit, nowMs - tokensAtMs),
    });
  }

  async settle(settlement: Settlement) {
    const { gateway, sequence, acknowledged, ended, charges, growing, demands, usage, running, over } = settlement;
    const wallMs = this.#clock.wall();
    const notes = this.#noted.gateway !== gateway || Math.abs(wallMs - this.#noted.wallMs) >= this.#notedForMs;
    if (notes) this.#noted = { gateway, wallMs };
    const text = JSON.stringify({
      gateway,
      sequence,
      acknowledged,
      notes,
      changes: some([...ended.map(changeOfEnd), ...charges.map(changeOf)]),
      renewed: some(settlement.renewed.filter(({ limits }) => needsSeat(limits)).map(renewalOf)),
      growing: some(growing.map((each) => growthOf(each, wallMs))),
      demands: some(demands.map((each) => demandOf(each, wallMs))),
      ...(usage.length > 0 && usedOf(usage)),
      running: some(running.map(toldOf)),
      over: some(over),
    });
    const purpose = demands.length > 0 ? "admit requests" : "write down what has ended";
    const settling = this.#settle(purpose, prefixOnly, text, ...settlement.requests);
    const [gateways, grants, replies] = await settling.catch((error: unknown) => {
      this.#noted = notNoted;
      throw error;
    });
    if (gateways === 0) {
      const [message, internal] = ["Usage cannot be booked just now.", "an earlier settlement is missing"];
      throw new Fault("backend_unavailable", { message, internal });
    }
    const grown = growing.map(({ reservation }, at): Reservation => {
      const [tokens, budgetTokens] = grants[at] ?? [0, 0];
      return {
        ...reservation,
        tokens: reservation.tokens + tokens,
        budgetTokens: reservation.budgetTokens + budgetTokens,
      };
    });
    return { gateways, grown, admissions: replies.map((each, at) => admissionOf(each, demands[at] as Demand, wallMs)) };
  }
}

function admissionOf(reply: AdmitReply, demand: Demand, wallMs: number): Admission {
  const [by, requests, tokensOfMinute, spentOfBudget, budgetTokens] = reply;
  const { keyId, limits, seat, tokens } = demand;
  const judging = judgingLimits(demand, limits);
  const { tokensPerMinute = 0, budget } = judging;
  const levels = { requests: Number(requests), tokens: Number(tokensOfMinute) };
  const limitStatus = limitStatusOf(judging, levels);
  const spent = budget && spentOfBudget;
  if (by !== "") {
    const budgetEndsInMs = budget === undefined ? 0 : budgetPeriodAt(budget.per, wallMs).endsAtMs - wallMs;
    const waitMs = waitMsOf({ by, tokens, limits, levels, budgetEndsInMs });
    return { outcome: "refused", by, waitMs, limitStatus, spent };
  }
  const reservation: Reservation = {
    keyId,
    limits,
    seat,
    tokens: Math.min(tokens, tokensPerMinute),
    budgetTokens,
    kept: "shared",
  };
  return { outcome: "admitted", reservation, limitStatus, spent };
}

/** Returns a list, unless it is empty. */
function some<Each>(list: readonly Each[]): readonly Each[] | undefined {
  return list.length === 0 ? undefined : list;
}

function demandOf(demand: Demand, wallMs: number) {
  const { keyId, seat, tokens, promptTokens = 0 } = demand;
  const { budget, ...limits } = judgingLimits(demand, demand.limits);
  const spending = budget && {
    budget: budget.tokens,
    spentAt: spentAt(keyId, budgetPeriodAt(budget.per, wallMs).name),
  };
  return { ...limits, ...spending, keyId, seat, tokens, promptTokens };
}

/** Returns the change of a key's buckets, and the seat to free. A negative number is given back. */
function changeOfEnd({ reservation, ran, usedTokens }: Settled) {
  const { keyId, limits, seat } = reservation;
  const change = changeOf({
    keyId,
    limits,
    requests: ran ? 0 : -1,
    tokens: (ran ? usedTokens : 0) - reservation.tokens,
  });
  return needsSeat(limits) ? { ...change, seat, hasReserved: limits.budget !== undefined } : change;
}

function changeOf({ keyId, limits: { requestsPerMinute, tokensPerMinute }, requests, tokens }: Charge) {
  return { keyId, requestsPerMinute, tokensPerMinute, requests, tokens };
}

function growthOf({ reservation, usedTokens }: Growth, wallMs: number) {
  const { limits, ...held } = reservation;
  const { tokensPerMinute, budget } = limits;
  const at = budget && spentAt(reservation.keyId, budgetPeriodAt(budget.per, wallMs).name);
  return { ...held, tokensPerMinute, budget: budget?.tokens, spentAt: at, wanted: usedTokens + growthTokens };
}

function renewalOf({ keyId, seat, limits, budgetTokens }: Reservation) {
  return { keyId, seat, budgetTokens: limits.budget && budgetTokens };
}

/** Returns the use of a request under way, as it is booked if its gateway is gone. */
function toldOf({ id, usage, answer, request }: RunningUsage) {
  const moved = answer && { answer, movedUsage: usedOf([{ ...usage, failed: 0 }]).usage };
  const used = JSON.stringify({ ...usedOf([usage]), made: madeOf(usage), ...moved });
  return { id, keyId: usage.keyId, used, answer, request };
}

/** Returns what is added to the books for these rows. */
function usedOf(usage: readonly UsageRow[]) {
  const spent: { at: string; endsAtMs: number; tokens: number }[] = [];
  for (const { keyId, day, promptTokens, completionTokens } of usage) {
    const tokens = promptTokens + completionTokens;
    if (tokens === 0) continue;
    // The tokens count in the day and in the month: the key may get either budget later.
    for (const per of budgetPeriods) {
      const { name, endsAtMs } = budgetPeriodAt(per, Date.parse(day));
      spent.push({ at: spentAt(keyId, name), endsAtMs, tokens });
    }
  }
  return { spent, usage: usageInRedis(usage) };
}

interface SharedLimitsOptions {
  /** The limits that all gateways share. */
  readonly book: Pick<LimitsBook, "limitStatus">;
  /** This gateway's share of the limits. */
  readonly local: LocalLimits;
  readonly settlements: Pick<Settlements, "isAway" | "grantsShare" | "away" | "release" | "ask" | "occupy">;
}

/**
 * The limits of all gateways together, or this gateway's share of them while their book does not answer. No request
 * fails because the book is unavailable, and none runs uncounted. The share counts every admission of the book, so that
 * it is correct when the first request needs it. `Reservation.kept` says which of the two made a reservation.
 */
export class SharedLimits implements Limits {
  readonly #options: SharedLimitsOptions;

  constructor(options: SharedLimitsOptions) {
    this.#options = options;
  }

  async admit(demand: Demand): Promise<Admission> {
    const { local, settlements } = this.#options;
    if (settlements.grantsShare) return this.#ownShare(demand);
    let admission;
    try {
      admission = await settlements.ask(demand);
    } catch (error) {
      this.#away(error);
      const { keyId, limits, seat } = demand;
      // The part of the budget that it may have reserved is unknown here; the book finds it by the seat.
      const uncertain = { keyId, limits, seat, tokens: 0, budgetTokens: 0, kept: "shared" } as const;
      if (needsSeat(limits)) settlements.release(uncertain);
      return this.#ownShare(demand);
    }
    if (admission.outcome === "admitted") local.adopt(admission.reservation);
    if (admission.spent !== undefined) local.learn(demand, admission.spent);
    return admission;
  }

  occupy(key: Pick<Demand, "keyId" | "limits" | "seat">): Reservation {
    const { local, settlements } = this.#options;
    const reservation = { ...key, tokens: 0, budgetTokens: 0, kept: settlements.isAway ? "here" : "shared" } as const;
    local.occupy(reservation);
    settlements.occupy(reservation);
    return reservation;
  }

  async limitStatus(key: Pick<Demand, "keyId" | "limits">): Promise<LimitStatus> {
    const { book, local, settlements } = this.#options;
    if (settlements.isAway) return local.limitStatus(key);
    try {
      return await book.limitStatus(key);
    } catch (error) {
      this.#away(error);
      return local.limitStatus(key);
    }
  }

  #ownShare(demand: Demand): Admission {
    const admission = this.#options.local.admit(demand);
    return admission.outcome === "refused" ? { ...admission, isProvisional: true } : admission;
  }

  /** Throws any error but an unavailable book: a bug is not an outage. */
  #away(error: unknown): void {
    if (!(error instanceof Fault && error.code === "backend_unavailable")) throw error;
    this.#options.settlements.away(error);
  }
}
