import { Fault } from "#shared/fault/fault.ts";
import {
  type Admission,
  type Allowance,
  type Demand,
  type Held,
  type Limits,
  type LimitStatus,
} from "../limits/limits.ts";
import type { BudgetPeriod } from "#shared/admin/key-terms.ts";
import { amountText, moneyText } from "#shared/money/money.ts";
import { type Book, inSentence } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Caller } from "../keys/authenticate.ts";
import { KeyedCounts } from "../http/bound-uploads.ts";

type Refused = Extract<Admission, { outcome: "refused" }>;

/** The longest wait that a refusal tells a client. Official clients really sleep for that long. */
const retryAfterSecondsMax = 60;

/** Returns the fault for a request that a book refuses. The message names the book, the limit and when to try again. */
export function limitFault(
  { by, book: { limits, noun }, waitMs, limitStatus, period }: Refused,
  { tokens, promptTokens }: Pick<Demand, "tokens" | "promptTokens">,
  currency?: string,
): Fault {
  const texts = budgetTexts(limits, currency);
  const waitSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const retryAfterSeconds = Math.min(waitSeconds, retryAfterSecondsMax);
  const again = `Try again in ${shortDuration(waitSeconds * 1_000)}`;
  switch (by) {
    case "requests":
      return new Fault("rate_limit_requests", {
        message: `${noun} may send ${counted(limitStatus.requests?.limit, "request")} a minute, and has sent ${limitStatus.requests?.limit === 1 ? "it" : "them"}. ${again}.`,
        retryAfterSeconds,
      });
    case "tokens":
      return new Fault("rate_limit_tokens", {
        message: `${noun} may use ${counted(limitStatus.tokens?.limit, "token")} a minute and has ${limitStatus.tokens?.remaining} left; this request may use ${tokens}. ${again}, or allow it a shorter answer with max_tokens.`,
        retryAfterSeconds,
      });
    case "concurrency":
      return new Fault("concurrency_limit_exceeded", {
        message: `${noun} may have ${counted(limits.concurrency, "request")} under way at once, and has. ${again}, when one may have ended.`,
        retryAfterSeconds,
      });
    case "budget_reserved":
    case "spend_reserved":
      return new Fault("rate_limit_tokens", {
        message: `${noun} may use ${texts[by === "spend_reserved" ? "spend" : "budget"]?.all}, and its requests under way have reserved what is left of them. ${again}, when some may have ended.`,
        retryAfterSeconds,
      });
    case "prompt":
      return new Fault("insufficient_quota", {
        message: `This prompt has about ${promptTokens} tokens, more than ${inSentence(noun)} has left of ${lengthLimitsOf(limits, texts)}. Send a shorter prompt, or ask whoever issued the key for a higher limit.`,
      });
    case "budget":
    case "spend":
      return new Fault("insufficient_quota", {
        message: `${noun} has used ${texts[by]?.usedUp(period?.used ?? 0)}; it begins anew on ${dayText.format(period?.endsAtMs)}, 00:00 UTC.`,
      });
  }
}

const dayText = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

interface BudgetText {
  /** `500.00 EUR a month`. */
  readonly all: string;
  /** `500.12 of 500.00 EUR this month`. */
  readonly usedUp: (used: number) => string;
}

function budgetTexts({ budget, spend }: KeyLimits, currency?: string): Partial<Record<"budget" | "spend", BudgetText>> {
  const textOf = (all: string, per: BudgetPeriod, usedText: (used: number) => string): BudgetText => ({
    all: `${all} a ${per}`,
    usedUp: (used) => `${usedText(used)} of ${all} ${per === "day" ? "today" : "this month"}`,
  });
  return {
    ...(budget && { budget: textOf(counted(budget.tokens, "token"), budget.per, String) }),
    ...(spend && { spend: textOf(moneyText(spend.millionths, currency), spend.per, amountText) }),
  };
}

function lengthLimitsOf({ tokensPerMinute }: KeyLimits, { budget, spend }: ReturnType<typeof budgetTexts>): string {
  const ofMinute = tokensPerMinute === undefined ? undefined : `${counted(tokensPerMinute, "token")} a minute`;
  return [ofMinute, budget?.all, spend?.all].filter((text) => text !== undefined).join(" and ");
}

function counted(count: number | undefined, what: string): string {
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}

/** Returns a rate-limit status as OpenAI's headers. A limit that no book has gets no header. */
export function limitHeaders({ requests, tokens }: LimitStatus): Readonly<Record<string, string>> {
  return { ...headersOf("requests", requests), ...headersOf("tokens", tokens) };
}

function headersOf(name: keyof LimitStatus, allowance: Allowance | undefined): Record<string, string> {
  if (allowance === undefined) return {};
  return {
    [`x-ratelimit-limit-${name}`]: String(allowance.limit),
    [`x-ratelimit-remaining-${name}`]: String(allowance.remaining),
    [`x-ratelimit-reset-${name}`]: shortDuration(allowance.resetMs),
  };
}

/** Formats a duration as OpenAI does in headers: `20ms`, `1s`, `6m0s`, `1h0m0s`. Rounds up. */
export function shortDuration(ms: number): string {
  const wholeMs = Math.max(0, Math.ceil(ms));
  if (wholeMs > 0 && wholeMs < 1_000) return `${wholeMs}ms`;
  const seconds = Math.ceil(wholeMs / 1_000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes === 0) return `${seconds}s`;
  return hours === 0 ? `${minutes}m${seconds % 60}s` : `${hours}h${minutes % 60}m${seconds % 60}s`;
}

declare module "../http/request-state.ts" {
  interface RequestState {
    /** The rate-limit status when the request was admitted. Each answer to the request has it in its headers. */
    limitStatus?: LimitStatus;
  }
}

/**
 * Returns the noted rate-limit headers for an answer that is written past the framework: a name, its value, the next
 * name.
 */
export function rateLimitLines(request: FastifyRequest): string[] {
  const { limitStatus } = request.state;
  return limitStatus === undefined ? [] : Object.entries(limitHeaders(limitStatus)).flat();
}

/**
 * Adds rate-limit headers to the answers of a scope that the framework writes. These are answers that cost nothing, and
 * answers to failed requests.
 */
export function addRateLimitHeaders(
  scope: FastifyInstance,
  { limits, log }: { readonly limits: Limits; readonly log: Pick<Log, "warn"> },
): void {
  const ask = async (reply: FastifyReply, { key, books }: Caller): Promise<void> => {
    try {
      reply.headers(limitHeaders(await limits.limitStatus(books.filter(hasRate))));
    } catch (error) {
      // An answer without these headers is better than none.
      log.warn({ err: error, key: key.id }, "how a key stands cannot be told");
    }
  };
  scope.addHook("onSend", (request, reply, payload, done) => {
    const { limitStatus, caller } = request.state;
    if (limitStatus !== undefined) reply.headers(limitHeaders(limitStatus));
    else if (caller?.books.some(hasRate)) return ask(reply, caller);
    done(null, payload);
    return undefined;
  });
}

function hasRate({ limits }: Book): boolean {
  return limits.requestsPerMinute !== undefined || limits.tokensPerMinute !== undefined;
}

/** A refusal is remembered for no longer than this. */
const refusedForMsMax = 60_000;

/**
 * Judges the books of a request before its body is read, by what this gateway knows without asking the store. Charges
 * nothing: `Limits.admit` decides once the length of the request is known.
 */
export class EarlyLimits {
  readonly #clock: Pick<Clock, "now">;
  readonly #underWay = new KeyedCounts();
  /** Refusals by the object of a book, which lasts as long as its limits: a change forgets refusals under the old ones. */
  readonly #refused = new WeakMap<Book, { readonly refusal: Refused; readonly untilMs: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns the fault that ends a request of these books, if it is already known that one of them is full. */
  judge(books: readonly Book[]): Fault | undefined {
    for (const book of books) {
      const refusal = this.#refusalOf(book);
      if (refusal !== undefined) return limitFault(refusal, { tokens: 0 });
    }
    return undefined;
  }

  #refusalOf(book: Book): Refused | undefined {
    const refused = this.#refused.get(book);
    const waitMs = refused === undefined ? 0 : refused.untilMs - this.#clock.now();
    if (refused !== undefined && waitMs > 0) return { ...refused.refusal, waitMs };
    const { concurrency = Infinity } = book.limits;
    if (this.#underWay.of(book.id) < concurrency) return undefined;
    return { outcome: "refused", by: "concurrency", book, waitMs: 0, limitStatus: {} };
  }

  /** Counts a request in books with a limit of concurrency, until the returned function is called. */
  begin(books: readonly Book[]): () => void {
    for (const { id } of books) this.#underWay.add(id, 1);
    return () => {
      for (const { id } of books) this.#underWay.add(id, -1);
    };
  }

  /** Remembers a refusal that holds for any request of its book, however short. */
  note(refusal: Refused): void {
    if (refusal.isProvisional || (refusal.by !== "requests" && refusal.by !== "budget")) return;
    const untilMs = this.#clock.now() + Math.min(refusal.waitMs, refusedForMsMax);
    this.#refused.set(refusal.book, { refusal, untilMs });
  }

  /** Forgets the refusals of books that got back what a request had taken. */
  forget(held: readonly Held[]): void {
    for (const { book } of held) this.#refused.delete(book);
  }
}
