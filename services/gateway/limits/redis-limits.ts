import type { KeyLimits } from "#shared/keys/key-limits.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { RedisConnection } from "#shared/process/redis-connection.ts";
import { RedisScript } from "#shared/process/redis-script.ts";
import { AskTogether } from "./ask-together.ts";
import type { Endings, Telling } from "./endings.ts";
import { standingOf, waitMsOf } from "./judge-demand.ts";
import {
  budgetPeriodAt,
  needsSeat,
  seatLivesMs,
  type Admission,
  type Admitted,
  type AheadWish,
  type AloneGrants,
  type Demand,
  type GrantedAlone,
  type LendingLimits,
  type Period,
  type Refusal,
  type Standing,
} from "./limits.ts";
import { costWithin, tokenRate } from "./rate.ts";
import { admitLua, standingLua } from "./redis-limits-script.ts";

const admitScript = new RedisScript(admitLua);
const standingScript = new RedisScript(standingLua);

/** The three bounds of one script call, so that no call blocks Redis for long. */
const demandsMax = 250;
const endsMax = 500;
const untoldMax = 100;
/** The longest time that a demand waits for the call under way, where Redis is far. */
const togetherMs = 2;

/** The letters of the script's reply: `admitted`, and one letter for each limit that can refuse. */
const admitted = "a";
const refusals: Readonly<Record<string, Refusal>> = {
  b: "budget",
  v: "budget_reserved",
  c: "concurrency",
  r: "requests",
  t: "tokens",
};
const wordsPerKey = 7;

/** A value of the script's reply. Whole numbers arrive as numbers, numbers with a fraction as text. */
type Word = string | number;

/** The demands of one key under the same limits, in the order of arrival. */
interface Question {
  readonly keyId: string;
  readonly limits: KeyLimits;
  readonly period: Period | undefined;
  readonly demands: Demand[];
  /** The index of each demand in the batch, where its admission belongs. */
  readonly places: number[];
  /** The places that the gateway asks for ahead, as demands that come after all others. */
  readonly ahead: readonly Demand[];
}

interface RedisLimitsOptions {
  readonly clock: Pick<Clock, "wall" | "after">;
  readonly endings?: Endings;
  readonly alone?: AloneGrants;
  readonly seatLivesMs?: number;
}

/** Returns the Redis key that counts the tokens that an API key used of its budget in a period. */
export function spentAt(keyId: string, period: string): string {
  return `spent:${keyId}:${period}`;
}

/**
 * Limits that hold over all gateways together, exact at any moment. A script in Redis decides on all demands of a
 * batch, in the order of arrival. The books write there the settlements of the admitted requests.
 */
export class RedisLimits implements LendingLimits {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, "wall">;
  readonly #endings: Endings | undefined;
  readonly #alone: AloneGrants | undefined;
  readonly #seatLivesMs: number;
  readonly #together: AskTogether<Demand, Admission>;

  constructor(redis: RedisConnection, options: RedisLimitsOptions) {
    this.#redis = redis;
    this.#clock = options.clock;
    this.#endings = options.endings;
    this.#alone = options.alone;
    this.#seatLivesMs = options.seatLivesMs ?? seatLivesMs;
    this.#together = new AskTogether({
      ask: (demands) => this.#admitAll(demands),
      askedMax: demandsMax,
      waitMs: togetherMs,
      clock: options.clock,
    });
  }

  admit(demand: Demand): Promise<Admission> {
    return this.#together.ask(demand);
  }

  async standing({ keyId, limits }: Pick<Demand, "keyId" | "limits">): Promise<Standing> {
    const { requestsPerMinute, tokensPerMinute } = limits;
    const asked = [keyId, orNothing(requestsPerMinute), orNothing(tokensPerMinute)];
    const [requestsUsed, tokensUsed] = wordsOf(
      await standingScript.run(this.#redis, "tell how a key stands", ...asked),
      2,
    );
    return standingOf(limits, { requestsUsed: Number(requestsUsed), tokensUsed: Number(tokensUsed) });
  }

  async ahead({ keyId, limits, seats, tokens }: AheadWish): Promise<readonly Admitted[]> {
    const wallMs = this.#clock.wall();
    const ahead = seats.map((seat): Demand => ({ keyId, limits, seat, tokens }));
    const question = { ...questionOf({ keyId, limits }, wallMs), ahead };
    const [answers = []] = await this.#ask("take places ahead", [question], wallMs);
    return answers.filter((admission) => admission.outcome === "admitted");
  }

  async #admitAll(demands: readonly Demand[]): Promise<readonly Admission[]> {
    const wallMs = this.#clock.wall();
    const keys = byKey(demands, wallMs);
    const answers = await this.#ask("admit a request", keys, wallMs);
    const admissions: Admission[] = [];
    keys.forEach(({ places }, at) => {
      answers[at]?.forEach((admission, of) => (admissions[places[of] ?? 0] = admission));
    });
    return admissions;
  }

  async #ask(purpose: string, asking: readonly Question[], wallMs: number): Promise<readonly (readonly Admission[])[]> {
    const tellings: Telling[] = [];
    const keys = [...asking, ...this.#untoldBeside(asking, wallMs)];
    const alone: { readonly question: Question; readonly granted: GrantedAlone }[] = [];
    const asked = [String(this.#seatLivesMs)];
    let endsLeft = endsMax;
    for (const question of keys) {
      const told = this.#endedOf(question, endsLeft);
      for (const { ended } of told) endsLeft -= ended.length;
      tellings.push(...told);
      const granted = this.#alone?.tellAlone(question.keyId);
      if (granted !== undefined) alone.push({ question, granted });
      pushKey(asked, question, { told, granted });
    }
    try {
      const reply = await admitScript.run(this.#redis, purpose, ...asked);
      const words = wordsOf(reply, keys.length * wordsPerKey);
      for (const telling of tellings) telling.heard();
      return keys.map((question, at) =>
        admissionsOf(question, words.slice(at * wordsPerKey, (at + 1) * wordsPerKey), wallMs),
      );
    } catch (error) {
      for (const telling of tellings) telling.unheard();
      for (const { question, granted } of alone) this.#alone?.untellAlone(question.keyId, question.limits, granted);
      throw error;
    }
  }

  /**
   * Returns keys that have no demand in this batch, but local grants that were not reported to Redis. Other gateways
   * may get demands for these keys.
   */
  #untoldBeside(asking: readonly Question[], wallMs: number): readonly Question[] {
    if (this.#alone === undefined || this.#alone.untold.size === 0) return [];
    const asked = new Set(asking.map(({ keyId }) => keyId));
    const others = [...this.#alone.untold].filter(([keyId]) => !asked.has(keyId)).slice(0, untoldMax);
    return others.map(([keyId, limits]) => questionOf({ keyId, limits }, wallMs));
  }

  #endedOf({ keyId, limits }: Question, max: number): readonly Telling[] {
    return needsSeat(limits) ? (this.#endings?.tell(keyId, max) ?? []) : [];
  }
}

const nothingAhead: readonly Demand[] = [];

function questionOf({ keyId, limits }: Pick<Demand, "keyId" | "limits">, wallMs: number): Question {
  const period = limits.budget && budgetPeriodAt(limits.budget.per, wallMs);
  return { keyId, limits, period, demands: [], places: [], ahead: nothingAhead };
}

/**
 * Groups demands by key. After a change of a key's limits, its later demands form another question; the earlier demands
 * come first.
 */
function byKey(demands: readonly Demand[], wallMs: number): readonly Question[] {
  const keys: Question[] = [];
  const latest = new Map<string, Question>();
  demands.forEach((demand, place) => {
    let question = latest.get(demand.keyId);
    if (question?.limits !== demand.limits) {
      question = questionOf(demand, wallMs);
      latest.set(demand.keyId, question);
      keys.push(question);
    }
    question.demands.push(demand);
    question.places.push(place);
  });
  return keys;
}

function pushKey(
  asked: string[],
  { keyId, limits, period, demands, ahead }: Question,
  { told, granted }: { readonly told: readonly Telling[]; readonly granted: GrantedAlone | undefined },
): void {
  const { requestsPerMinute, tokensPerMinute, concurrency, budget } = limits;
  asked.push(keyId, orNothing(requestsPerMinute), orNothing(tokensPerMinute));
  asked.push(orNothing(concurrency), orNothing(budget?.tokens));
  asked.push(period === undefined ? "" : spentAt(keyId, period.name));
  asked.push(String(granted?.requests ?? 0), String(granted?.tokens ?? 0), String(told.length));
  for (const { batch, ended } of told) {
    asked.push(batch, String(ended.length), String(sumOf(ended, ({ usedTokens }) => usedTokens)));
    for (const { hold } of ended) asked.push(hold.seat);
    for (const { usedTokens } of ended) asked.push(String(usedTokens));
  }
  const costOf = ({ tokens }: Demand): number =>
    tokensPerMinute === undefined ? 0 : costWithin(tokenRate(tokensPerMinute), tokens);
  asked.push(String(demands.length), String(sumOf(demands, ({ tokens }) => tokens)), String(sumOf(demands, costOf)));
  for (const { seat, tokens } of demands) asked.push(seat, String(tokens));
  asked.push(String(ahead.length), String(ahead[0]?.tokens ?? 0));
  for (const { seat } of ahead) asked.push(seat);
}

function sumOf<Each>(each: readonly Each[], numberOf: (one: Each) => number): number {
  return each.reduce((sum, one) => sum + numberOf(one), 0);
}

function orNothing(limit: number | undefined): string {
  return limit === undefined ? "" : String(limit);
}

/** Reads the script's decisions into admissions. Each demand finds the limits as the demands before it left them. */
function admissionsOf(
  { limits, period, demands: asking, ahead }: Question,
  words: readonly Word[],
  wallMs: number,
): Admission[] {
  const [requests, tokens, spentByAll, reserved, told, lent, lentForMs] = words;
  if (typeof told !== "string" || told.length !== asking.length) throw otherReply();
  const taken = ahead.slice(0, Number(lent));
  const demands = taken.length === 0 ? asking : [...asking, ...taken];
  const letters = told + admitted.repeat(taken.length);
  const { tokensPerMinute, budget } = limits;
  const costOf = ({ tokens: asked }: Demand): number =>
    tokensPerMinute === undefined ? 0 : costWithin(tokenRate(tokensPerMinute), asked);
  const taking = demands.filter((_, at) => letters.charAt(at) === admitted);
  const used = {
    requestsUsed: Number(requests) - taking.length,
    tokensUsed: Number(tokens) - sumOf(taking, costOf),
  };
  const spent = budget && Number(spentByAll);
  const budgetEndsInMs = period === undefined ? 0 : period.endsAtMs - wallMs;
  let left = budget === undefined ? 0 : budget.tokens - Number(spentByAll) - Number(reserved);
  return demands.map((demand, at): Admission => {
    const letter = letters.charAt(at);
    if (letter !== admitted) {
      const by = refusals[letter];
      if (by === undefined) throw otherReply();
      const waitMs = waitMsOf({ by, tokens: demand.tokens, limits, used, budgetEndsInMs });
      // Unused places that come back do not help here: a spent budget stays spent.
      const lentHelps = by !== "budget" && Number(lentForMs) > 0;
      const lentFor = lentHelps ? Number(lentForMs) : undefined;
      return { outcome: "refused", by, waitMs, standing: standingOf(limits, used), spent, lentForMs: lentFor };
    }
    const { keyId, seat } = demand;
    const cost = costOf(demand);
    const budgetTokens = budget === undefined ? 0 : Math.min(demand.tokens, left);
    used.requestsUsed += 1;
    used.tokensUsed += cost;
    left -= budgetTokens;
    const hold = { keyId, limits, seat, tokens: cost, budgetTokens, kept: "shared" } as const;
    return { outcome: "admitted", hold, standing: standingOf(limits, used), spent };
  });
}

function wordsOf(reply: unknown, count: number): readonly Word[] {
  if (!Array.isArray(reply) || reply.length !== count || !reply.every(isWord)) throw otherReply();
  return reply;
}

function isWord(word: unknown): word is Word {
  return typeof word === "string" || typeof word === "number";
}

function otherReply(): Error {
  return new TypeError("Redis gave another reply than its script has");
}
