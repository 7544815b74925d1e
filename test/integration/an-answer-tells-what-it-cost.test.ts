import { OpenAI } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { amountText, sumOf } from "#shared/money/money.ts";
import type { Prices } from "#shared/prices/price-terms.ts";
import { removePrice, setPrice } from "../harness/set-records.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Operator } from "../harness/operator.ts";
import { until } from "../harness/until.ts";

let gateway: GatewayInProcess;
let operator: Operator;
beforeAll(async () => {
  gateway = await startGatewayInProcess({ env: { TRUNKLINE_CURRENCY: "EUR" } });
  operator = Operator.beside(gateway.store);
});
afterAll(() => gateway[Symbol.asyncDispose]());

const means = () => ({ ...gateway.store, actor: { by: "the operator" } });

/** A key, and the official client that has it. */
async function newcomer() {
  const { record, endpoint } = await gateway.issue();
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: endpoint.key });
  return { record, endpoint, client };
}

const costs = { usage: { include: true } } as object;
const says = (content: string) => ({ model: "scripted", messages: [{ role: "user" as const, content }] });

/** Sets the prices of the model, and waits until the gateway has them. */
async function price(prices: Prices): Promise<void> {
  const { endpoint } = await newcomer();
  await setPrice("script*", prices, means());
  const request = amountText(prices.request ?? 0);
  const told = async () => {
    const { headers } = await endpoint.chat({ model: "scripted", says: "/script tokens=0" });
    return headers.get("x-trunkline-cost")?.startsWith(request.slice(0, -2)) ?? false;
  };
  await until(told, { what: "the gateway to have the prices" });
}

test("a whole and a streamed answer, of chat and of completions, tell the cost that usage books", async () => {
  await price({ input: 20_000_000, output: 600_000, request: 70_000_000 });
  const { client, record, endpoint } = await newcomer();
  const whole = await client.chat.completions.create({ ...says("/script tokens=3"), ...costs }).withResponse();
  const { prompt_tokens: prompt = 0, completion_tokens: answer = 0, ...used } = whole.data.usage ?? {};
  const first = sumOf([prompt, 20_000_000], [answer, 600_000], [1_000_000, 70_000_000]);
  expect(whole.response.headers.get("x-trunkline-cost")).toBe(`${amountText(first)} EUR`);
  expect(used).toMatchObject({ cost: Number(amountText(first)) });
  expect(whole.response.headers.get("x-trunkline-ignored")).toBeNull();
  expect(await operator.booked(record.id)).toMatchObject({ cost: first });

  const stream = await client.chat.completions.create({ ...says("/script tokens=4"), ...costs, stream: true });
  const chunks = await Array.fromAsync(stream);
  const streamed = Object(chunks.at(-1)?.usage);
  const second = sumOf(
    [streamed.prompt_tokens, 20_000_000],
    [streamed.completion_tokens, 600_000],
    [1_000_000, 70_000_000],
  );
  expect(streamed.cost).toBe(Number(amountText(second)));
  expect(await operator.booked(record.id, ({ requests }) => requests === 2)).toMatchObject({ cost: first + second });

  const legacy = await client.completions.create({ model: "scripted", prompt: "/script tokens=3", ...costs });
  const third = Math.round(Object(legacy.usage).cost * 1_000_000);
  expect(third).toBeGreaterThan(70_000_000);
  const booked = await operator.booked(record.id, ({ requests }) => requests === 3);
  expect(booked.cost).toBe(first + second + third);

  const silent = await client.chat.completions.create(says("/script tokens=3"));
  expect(silent.usage).not.toHaveProperty("cost");
  const { headers } = await endpoint.post("/messages", { ...says("/script tokens=3"), max_tokens: 9 });
  expect(headers.get("x-trunkline-cost")).toMatch(/^70\.\d+ EUR$/);
  const metrics = await MetricsText.scrape(gateway.operationsUrl);
  expect(metrics.value("trunkline_cost_total", { model: "scripted", team: "none" })).toBeGreaterThan(350);
});

test("an answer costs what the prices were when it was admitted, whatever becomes of them meanwhile", async () => {
  await price({ output: 5_000_000, request: 1_000_000 });
  const { endpoint, record } = await newcomer();
  const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=40 delay_ms=50" });
  await until(() => stream.events.length > 0, { what: "the answer to begin" });
  await price({ output: 900_000_000, request: 2_000_000 });
  expect(stream.events.at(-1)).not.toContain("[DONE]");
  await stream.over;
  expect(await operator.booked(record.id, ({ requests }) => requests === 1)).toMatchObject({
    cost: 1_000_000 + 5 * 40,
  });
});

test("an answer that is asked for again by its Idempotency-Key costs once", async () => {
  await price({ output: 5_000_000, request: 3_000_000 });
  const { client, record } = await newcomer();
  const ask = () =>
    client.chat.completions.create(says("/script tokens=3"), { headers: { "idempotency-key": "one" } }).withResponse();
  expect((await ask()).response.headers.get("x-trunkline-cost")).toBe("3.000015 EUR");
  expect((await ask()).response.headers.get("x-trunkline-cost")).toBe("0.00 EUR");
  expect(await operator.booked(record.id)).toMatchObject({ requests: 1, cost: 3_000_015 });
});

test("an answer that is asked for again goes on to its end where its key has less left than a request costs", async () => {
  await price({ output: 5_000_000, request: 4_000_000 });
  const { endpoint, record } = await gateway.issue({ limits: { spend: { millionths: 5_000_000, per: "day" } } });
  const asked = { ...says("/script tokens=40 delay_ms=20"), stream: true };
  const ask = (signal?: AbortSignal) =>
    endpoint.post("/chat/completions", asked, { headers: { "idempotency-key": "again" }, signal });
  const leaving = new AbortController();
  await ask(leaving.signal);
  leaving.abort();
  const text = await (await ask()).text();
  expect(text).toContain("token-39 ");
  expect(text).not.toContain("x-trunkline-limit");
  const isWhole = ({ completionTokens }: { completionTokens: number }) => completionTokens >= 40;
  expect(await operator.booked(record.id, isWhole)).toMatchObject({ requests: 1, cost: 4_000_000 + 5 * 40 });
});

test("an answer of a model without a price tells no cost, and costs nothing", async () => {
  await removePrice("script*", means());
  const { client, record } = await newcomer();
  const ask = () => client.chat.completions.create({ ...says("/script tokens=3"), ...costs }).withResponse();
  const { data } = await until(
    async () => {
      const answer = await ask();
      return answer.response.headers.get("x-trunkline-cost") === null && answer;
    },
    { what: "the gateway to know no price" },
  );
  expect(data.usage).toMatchObject({ completion_tokens: 3 });
  expect(data.usage).not.toHaveProperty("cost");
  const before = (await operator.booked(record.id)).cost;
  await ask();
  const { requests } = await operator.booked(record.id);
  expect((await operator.booked(record.id, (sum) => sum.requests >= requests)).cost).toBe(before);
});
