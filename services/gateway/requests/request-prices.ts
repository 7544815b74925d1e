import { costOf, dearestRate, type MoneyRate, type PricedSize, type PricedUse } from "#shared/prices/cost.ts";
import type { PriceTable } from "#shared/prices/price-table.ts";
import type { ModelTarget } from "../routing/job-placements.ts";

interface PricedRequest {
  readonly promptTokens: number;
  readonly targets: readonly ModelTarget[];
  readonly size?: PricedSize | undefined;
}

interface Answered extends Omit<PricedUse, "seconds" | "images"> {
  readonly model: string;
  readonly isExternal: boolean;
  /** The seconds of the recording as its machine reported them, if it did. */
  readonly seconds: number | undefined;
}

const noSize: PricedSize = { seconds: 0, secondsMax: 0, images: 0 };

/** The prices of a request as they were when it was admitted, and the most that it may cost by them. */
export class RequestPrices implements MoneyRate {
  readonly fixed: number;
  readonly perMillion: number;
  readonly #table: PriceTable;
  readonly #size: PricedSize;

  constructor(table: PriceTable, { rate, size }: { readonly rate: MoneyRate; readonly size: PricedSize }) {
    this.fixed = rate.fixed;
    this.perMillion = rate.perMillion;
    this.#table = table;
    this.#size = size;
  }

  /** Returns the cost of an answer in millionths; undefined if its model has no price where it ran. */
  costOf({ model, isExternal, seconds, requests, ...tokens }: Answered): number | undefined {
    const prices = this.#table.find(model, isExternal);
    const { secondsMax, ...size } = this.#size;
    const heard = requests * Math.min(seconds ?? size.seconds, secondsMax);
    return prices && costOf(prices, { ...tokens, requests, seconds: heard, images: requests * size.images });
  }
}

/** Returns the prices that hold for a request from now on; undefined if none of its targets has one. */
export function pricesOf(
  { promptTokens, targets, size = noSize }: PricedRequest,
  table: PriceTable,
): RequestPrices | undefined {
  if (table.isEmpty) return undefined;
  const prices = targets.flatMap(({ modelId, external }) => table.find(modelId, external === true) ?? []);
  if (prices.length === 0) return undefined;
  const { secondsMax: _, ...sized } = size;
  return new RequestPrices(table, { rate: dearestRate(prices, { ...sized, promptTokens, requests: 1 }), size });
}
