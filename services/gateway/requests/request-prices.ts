import { costOf, type MoneyRate, type PricedSize, type PricedUse } from "#shared/prices/cost.ts";
import { type Prices, priceTermNames } from "#shared/prices/price-terms.ts";
import type { PriceTable } from "#shared/prices/price-table.ts";
import type { ModelTarget } from "../routing/job-placements.ts";

interface PricedRequest {
  readonly promptTokens: number;
  /** Zero for an answer that is resumed, whose request has paid. */
  readonly requests?: 0 | 1;
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

  constructor(table: PriceTable, all: readonly Prices[], { promptTokens, requests = 1, size = noSize }: PricedRequest) {
    const use = { ...size, promptTokens, completionTokens: 0, requests };
    const costs = [0, promptTokens].flatMap((cachedTokens) =>
      all.map((each) => costOf(each, { ...use, cachedTokens })),
    );
    this.fixed = Math.max(...costs);
    this.perMillion = Math.max(...all.map(({ output = 0 }) => output));
    this.#table = table;
    this.#size = size;
  }

  /** Returns the cost of an answer in millionths; undefined if its model has no price where it ran. */
  costOf({ model, isExternal, ...used }: Answered): number | undefined {
    const prices = this.#table.find(model, isExternal);
    const { seconds, secondsMax, images } = this.#size;
    const heard = Math.min(used.seconds ?? seconds, secondsMax);
    return prices && costOf(prices, { ...used, seconds: used.requests * heard, images: used.requests * images });
  }
}

/** Returns the prices that hold for a request from now on; undefined if none of its targets has one above zero. */
export function pricesOf(request: PricedRequest, table: PriceTable): RequestPrices | undefined {
  if (table.isEmpty) return undefined;
  const prices = request.targets.flatMap(({ modelId, external }) => table.find(modelId, external === true) ?? []);
  const isFree = prices.every((each) => priceTermNames.every((term) => !each[term]));
  return isFree ? undefined : new RequestPrices(table, prices, request);
}
