import { amountText } from "#shared/money/money.ts";
import type { MoneyRate } from "#shared/prices/cost.ts";
import type { Usage } from "#shared/protocol/answer-events.ts";
import type { RequestOutcome } from "../http/request-state.ts";
import type { AnswerCourse } from "../jobs/answer-course.ts";
import { clampTokens, windowTokensMax, type TokenCeiling, type TokenCounts } from "../limits/token-estimates.ts";

// The tokens of a request, and their cost, as far as its machine is believed.

/** The terms on which a request was admitted. */
export interface Demanded {
  readonly promptTokens: number;
  /** The most tokens that a machine may report for the request; more is not believed. */
  readonly ceiling: TokenCeiling;
  /** The price of a second of a recording, whose server may report its length in place of tokens. */
  readonly tokensPerSecond?: number | undefined;
  /** The prices that hold for the request. */
  readonly rate: RequestRate;
}

/** A request, as far as its tokens are counted. */
export interface CountedRequest {
  readonly asked: { readonly streamed: boolean } | undefined;
  readonly demanded: Demanded | undefined;
  readonly answer: AnswerCourse;
  readonly outcome: RequestOutcome | undefined;
}

export interface KnownMachines {
  /** The machines that run their models elsewhere. */
  readonly external: ReadonlySet<string>;
}

/** The money that a request may take, and the cost of its answer. */
export interface RequestRate extends MoneyRate {
  /** Returns the cost of booked tokens in millionths; undefined where the model that answers has no price. */
  costOf(told: CountedRequest, counted: TokenCounts, machines: KnownMachines, usage?: Usage): number | undefined;
}

/** Outcomes of requests that their own side gave up while a machine may have worked for them. */
const leftIn: ReadonlySet<string> = new Set([
  "client_closed",
  "slow_client",
  "key_invalid",
  "key_expired",
  "cancelled_by_operator",
]);

/** Returns the tokens that are booked, logged and measured. A machine is believed up to what is possible. */
export function believed(told: CountedRequest, reported: TokenCounts): TokenCounts {
  if (told.demanded === undefined) return reported;
  const counted = clampTokens(reported, told.demanded.ceiling, windowOf(told));
  const isPossible =
    reported.promptTokens === counted.promptTokens && reported.completionTokens === counted.completionTokens;
  return isPossible ? reported : counted;
}

/**
 * Returns the usage that the machine reported. Without a report, it counts the tokens that were delivered. For a
 * whole answer that was left early, it counts the tokens that the machine had made. The prompt then counts as it was
 * estimated, if a machine worked on it.
 */
export function reportedTokens(told: CountedRequest, usage = told.answer.usage): TokenCounts {
  const { answer, demanded, asked } = told;
  const { promptTokens: estimated = 0, tokensPerSecond: perSecond, ceiling } = demanded ?? {};
  const { outputTokens, madeTokens, countedTokens, isMoved } = answer;
  if (countedTokens !== undefined) {
    const completionTokens = Math.max(0, (usage?.completionTokens ?? outputTokens) - countedTokens);
    return { promptTokens: 0, completionTokens };
  }
  if (usage?.seconds !== undefined && perSecond !== undefined)
    return { promptTokens: Math.ceil(usage.seconds * perSecond), completionTokens: 0 };
  if (usage !== undefined) return { promptTokens: usage.promptTokens, completionTokens: usage.completionTokens };
  const most = windowOf(told) * (ceiling?.prompts ?? 1);
  return {
    promptTokens: hasPrompted(told) ? Math.min(estimated, most) : 0,
    completionTokens:
      isLeftAtWork(told) && asked?.streamed !== true && !isMoved ? Math.max(outputTokens, madeTokens) : outputTokens,
  };
}

/** True if a machine worked on the prompt. A recording of silence has an empty text, which comes without a token. */
export function hasPrompted(told: CountedRequest): boolean {
  const { answer, outcome } = told;
  return answer.firstAtMs !== undefined || outcome === "ok" || isLeftAtWork(told) || answer.isMoved;
}

function isLeftAtWork({ answer, outcome }: CountedRequest): boolean {
  return leftIn.has(outcome ?? "client_closed") && answer.hasBegun;
}

export type BookedCounts = TokenCounts & { readonly cost?: number | undefined };

/** Returns the cost of an answer with this usage, in the currency of the site. */
export function toldCost(told: CountedRequest, usage: Usage, parts: KnownMachines): number | undefined {
  const cost = told.demanded?.rate.costOf(told, believed(told, reportedTokens(told, usage)), parts, usage);
  return cost === undefined ? undefined : Number(amountText(cost));
}

/** Returns the context window up to which a machine is believed. */
export function windowOf({ answer }: Pick<CountedRequest, "answer">): number {
  return Math.min(answer.window ?? windowTokensMax, windowTokensMax);
}
