import { describe, expect, test } from "vitest";
import { costOf } from "#shared/prices/cost.ts";
import { PriceTable } from "#shared/prices/price-table.ts";
import type { CountedRequest } from "../../../services/gateway/requests/booked-tokens.ts";
import { freePrices, pricesOf } from "../../../services/gateway/requests/request-prices.ts";

const nothing = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, seconds: 0, images: 0, requests: 0 };
interface Answered {
  readonly machine?: string;
  readonly usage?: { readonly seconds?: number | undefined };
  readonly countedTokens?: number;
}

const qwen = { input: 200_000, cached: 20_000, output: 600_000 };

test.each([
  ["tokens, rounded up once", qwen, { promptTokens: 1_001, cachedTokens: 1_000, completionTokens: 1 }, 21],
  ["one millionth at least", { input: 1 }, { promptTokens: 1 }, 1],
  ["nothing for nothing", qwen, {}, 0],
  ["nothing at a price of zero", { input: 0, output: 0 }, { promptTokens: 9, completionTokens: 9 }, 0],
  ["no more cached tokens than its prompt has", qwen, { promptTokens: 1_000_000, cachedTokens: 5_000_000 }, 20_000],
  [
    "cached tokens as others without a price of their own",
    { input: 2_000_000 },
    { promptTokens: 9, cachedTokens: 9 },
    18,
  ],
  [
    "cached tokens nothing at a price of zero",
    { input: 2_000_000, cached: 0 },
    { promptTokens: 9, cachedTokens: 9 },
    0,
  ],
  [
    "seconds, images and the request",
    { second: 100, image: 20_000, request: 1_000 },
    { seconds: 3, images: 2, requests: 1 },
    41_300,
  ],
  ["the sum of all of them", { input: 1, second: 1, request: 1 }, { promptTokens: 1, seconds: 1, requests: 1 }, 3],
  ["at most 2^53", { second: 10 ** 12 }, { seconds: 2 ** 31 - 1 }, Number.MAX_SAFE_INTEGER],
])("a use costs %s", (_, prices, use, cost) => {
  expect(costOf(prices, { ...nothing, ...use })).toBe(cost);
});

describe("the prices of a request", () => {
  const table = new PriceTable([
    { name: "small", input: 100, output: 400, request: 7 },
    { name: "large", input: 1_000_000, output: 300 },
    { name: "large external", input: 5_000_000, output: 1 },
    { name: "whisper", second: 100 },
    { name: "recalled", input: 1_000_000, cached: 9_000_000 },
    { name: "given", input: 0, output: 0 },
  ]);
  const targets = (...models: string[]) =>
    models.map((name) => {
      const [modelId = "", external] = name.split(" ");
      return { modelId, machines: undefined, ...(external !== undefined && { external: true as const }) };
    });
  const counted = { promptTokens: 10, completionTokens: 0 };
  const answerOf = (model: string, { machine = "attic", usage = {}, countedTokens }: Answered = {}) =>
    [
      { answer: { model, machine, usage: { ...counted, ...usage }, countedTokens } } as unknown as CountedRequest,
      counted,
      { external: new Set(["cloud"]) },
    ] as const;

  test("the rate of a request is that of the dearest of its targets, in each part", () => {
    const rate = (...models: string[]) => pricesOf({ promptTokens: 10, targets: targets(...models) }, table);
    expect(rate("small", "large")).toMatchObject({ fixed: 10, perMillion: 400 });
    expect(rate("large external", "small")).toMatchObject({ fixed: 50, perMillion: 400 });
    expect(rate("free", "small")).toMatchObject({ fixed: 8, perMillion: 400 });
    expect(rate("recalled")).toMatchObject({ fixed: 90, perMillion: 0 });
    expect(rate("free")).toBe(freePrices);
    expect(pricesOf({ promptTokens: 10, targets: targets("small") }, new PriceTable([]))).toBe(freePrices);
  });

  test("a model with prices of zero is free, so that no budget in money stops it", () => {
    expect(pricesOf({ promptTokens: 10, targets: targets("given", "free") }, table)).toBe(freePrices);
    expect(pricesOf({ promptTokens: 10, targets: targets("given", "small") }, table).perMillion).toBe(400);
  });

  test("an answer costs what its own model costs where it ran", () => {
    const prices = pricesOf({ promptTokens: 10, targets: targets("small", "large", "large external") }, table);
    expect(prices.costOf(...answerOf("large"))).toBe(10);
    expect(prices.costOf(...answerOf("large", { machine: "cloud" }))).toBe(50);
    expect(prices.costOf(...answerOf("free"))).toBeUndefined();
  });

  test("a recording costs the seconds that its server reports, up to what its bytes can hold", () => {
    const size = { seconds: 10, secondsMax: 320, images: 0 };
    const prices = pricesOf({ promptTokens: 0, targets: targets("whisper"), size }, table);
    const costs = [undefined, 12, 9_999].map((seconds) =>
      prices.costOf(...answerOf("whisper", { usage: { seconds } })),
    );
    expect([prices.fixed, ...costs]).toEqual([1_000, 1_000, 1_200, 32_000]);
    expect(prices.costOf(...answerOf("whisper", { countedTokens: 0 }))).toBe(0);
  });
});
