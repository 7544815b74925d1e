import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { TokenCeiling } from "../../limits/token-estimates.ts";

/** The units of requests whose servers report no tokens. */
export const mediaUnits = ["second", "character", "image"] as const;
type MediaUnit = (typeof mediaUnits)[number];

/** The tokens that an operator charges for each unit. */
export type MediaPrices = Readonly<Partial<Record<MediaUnit, number>>>;

/** The size of a request. The seconds of a recording are an estimate, until its server reports them. */
export interface MediaSize {
  readonly unit: MediaUnit;
  readonly count: number;
}

/** Bytes of a second of MP3 at 128 kbit/s. */
const recordedBytesPerSecond = 16_000;

export function sizeOfRecordings(files: readonly { readonly bytes: Uint8Array }[]): MediaSize {
  const bytes = files.reduce((sum, { bytes: { byteLength } }) => sum + byteLength, 0);
  return { unit: "second", count: bytes / recordedBytesPerSecond };
}

export function sizeOfTexts(texts: unknown): MediaSize {
  return { unit: "character", count: [texts].flat().reduce((sum: number, text) => sum + String(text).length, 0) };
}

export interface MediaPrice {
  readonly promptTokens: number;
  readonly tokens: number;
  readonly ceiling: TokenCeiling;
  readonly tokensPerSecond: number | undefined;
}

/**
 * Returns what a request costs its key; undefined without a price. Throws for a key whose limit counts tokens where there
 * is no price: the limit would not hold.
 */
export function priceOf(
  { unit, count }: MediaSize,
  { key: { limits }, prices, ceiling }: Pricing,
): MediaPrice | undefined {
  const each = prices[unit];
  if (each !== undefined) {
    const tokens = Math.ceil(each * count);
    const promptTokens = Math.max(ceiling.promptTokens, tokens);
    const tokensPerSecond = unit === "second" ? each : undefined;
    return { promptTokens: tokens, tokens, ceiling: { ...ceiling, promptTokens }, tokensPerSecond };
  }
  if (limits?.tokensPerMinute === undefined && limits?.budget === undefined) return undefined;
  throw new Fault("insufficient_permissions", {
    message: `This key has a limit in tokens (--tpm or --budget), and this request is counted in ${unit}s, which have no price in tokens. Use a key that has only --rpm and --concurrency, or have the operator set TRUNKLINE_MEDIA_TOKENS.`,
  });
}

interface Pricing {
  readonly key: Pick<KeyRecord, "limits">;
  readonly prices: MediaPrices;
  readonly ceiling: TokenCeiling;
}
