import { Fault } from "#shared/fault/fault.ts";
import type { MediaBody } from "#shared/protocol/media-body.ts";
import type { PricedSize } from "#shared/prices/cost.ts";
import type { Book } from "#shared/records/book.ts";
import type { TokenCeiling } from "../../limits/token-estimates.ts";

/** The units of requests whose servers report no tokens. */
export const mediaUnits = ["second", "character", "image"] as const;
export type MediaUnit = (typeof mediaUnits)[number];

/** The tokens that an operator charges for each unit. */
export type MediaPrices = Readonly<Partial<Record<MediaUnit, number>>>;

/** The size of a request. The seconds of a recording are an estimate, until its server reports them. */
export interface MediaSize {
  readonly unit: MediaUnit;
  readonly count: number;
}

/** Bytes of a second of MP3 at 128 kbit/s. */
const recordedBytesPerSecond = 16_000;
/** Bytes of a second at 4 kbit/s, less than any codec of speech takes. A server's seconds are believed up to that. */
const recordedBytesPerSecondMin = 500;

export function sizeIn(unit: MediaUnit, { fields: { n = 1, input = "" }, files }: MediaBody): MediaSize {
  const counts = {
    second: files.reduce((sum, { bytes }) => sum + bytes, 0) / recordedBytesPerSecond,
    character: [input].flat().map(textOf).join("").length,
    image: Number(n),
  };
  return { unit, count: counts[unit] };
}

/** Returns the text of a part that is judged; an image has none. */
function textOf(input: unknown): string {
  return String(typeof input === "object" ? (Object(input).text ?? "") : input);
}

/** Returns the size of a request as money is charged for it. Characters have no price of their own. */
export function pricedSize({ unit, count }: MediaSize): PricedSize {
  const [seconds, images] = [unit === "second" ? count : 0, unit === "image" ? count : 0];
  return { seconds: Math.ceil(seconds), secondsMax: Math.ceil(secondsMaxOf(seconds)), images };
}

function secondsMaxOf(count: number): number {
  return Math.max(1, (count * recordedBytesPerSecond) / recordedBytesPerSecondMin);
}

interface Pricing {
  readonly books: readonly Book[];
  readonly prices: MediaPrices;
  readonly ceiling: TokenCeiling;
}

/**
 * Returns the cost of a request to its books; undefined without a price. Throws for a book whose limit counts tokens where
 * there is no price: the limit would not hold.
 */
export function priceOf({ unit, count }: MediaSize, { books, prices, ceiling }: Pricing) {
  const each = prices[unit];
  if (each !== undefined) {
    const tokens = Math.ceil(each * count);
    const isTimed = unit === "second";
    const promptTokens = isTimed ? Math.ceil(each * secondsMaxOf(count)) : Math.max(ceiling.promptTokens, tokens);
    const tokensPerSecond = isTimed ? each : undefined;
    return { promptTokens: tokens, tokens, ceiling: { ...ceiling, promptTokens }, tokensPerSecond };
  }
  const counting = books.find(({ limits }) => (limits.tokensPerMinute ?? limits.budget) !== undefined);
  if (counting === undefined) return undefined;
  throw new Fault("insufficient_permissions", {
    message: `${counting.noun} has a limit in tokens (--tpm or --budget), and this request is counted in ${unit}s, which have no price in tokens. Use a key that has only --rpm and --concurrency, or have the operator set TRUNKLINE_MEDIA_TOKENS.`,
  });
}
