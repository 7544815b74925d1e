import { costOf, freeRate, type PricedSize } from "#shared/prices/cost.ts";
import { type Prices, priceTermNames } from "#shared/prices/price-terms.ts";
import type { PriceTable } from "#shared/prices/price-table.ts";
import type { TokenCounts } from "../limits/token-estimates.ts";
import type { ModelTarget } from "../routing/job-placements.ts";
import { type CountedRequest, hasPrompted, type KnownMachines, type RequestRate } from "./booked-tokens.ts";

interface PricedRequest {
  readonly promptTokens: number;
  /** Zero for an answer that is resumed, whose request has paid. */
  readonly requests?: 0 | 1;
  readonly targets: readonly ModelTarget[];
  readonly size?: PricedSize | undefined;
}

/** The rate of a request whose models have no price above zero. */
export const freePrices: RequestRate = { ...freeRate, costOf: () => undefined };

const noSize: PricedSize = { seconds: 0, secondsMax: 0, images: 0 };

/** The prices of a request as they were when it was admitted, and the most that it may cost by them. */
class RequestPrices implements RequestRate {
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

  costOf(told: CountedRequest, counted: TokenCounts, { external }: KnownMachines, usage = told.answer.usage) {
    const { machine, model, countedTokens } = told.answer;
    if (machine === undefined || model === undefined) return undefined;
    const prices = this.#table.find(model, external.has(machine));
    // An answer that is resumed has paid for its request.
    const requests = countedTokens === undefined && (usage !== undefined || hasPrompted(told)) ? 1 : 0;
    const { secondsMax, images } = this.#size;
    const { cachedTokens = 0, seconds = this.#size.seconds } = usage ?? {};
    const size = { seconds: requests * Math.min(seconds, secondsMax), images: requests * images };
    return prices && costOf(prices, { ...counted, ...size, cachedTokens, requests });
  }
}

/** Returns the prices that hold for a request from now on. */
export function pricesOf(request: PricedRequest, table: PriceTable): RequestRate {
  if (table.isEmpty) return freePrices;
  const prices = request.targets.flatMap(({ modelId, external }) => table.find(modelId, external === true) ?? []);
  const isFree = prices.every((each) => priceTermNames.every((term) => !each[term]));
  return isFree ? freePrices : new RequestPrices(table, prices, request);
}
