import OpenAI, { RateLimitError } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { until } from "../harness/until.ts";

let redis: SomeServer;
let gateway: GatewayInProcess;
beforeAll(async () => {
  redis = await redisUrl();
  gateway = await startGatewayInProcess({ redisUrl: redis.url });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await redis.stop();
});

const chat = { model: "scripted", messages: [{ role: "user" as const, content: "/script tokens=10" }], max_tokens: 10 };
const waiting = { ...chat, messages: [{ role: "user" as const, content: "/script tokens=10 first_ms=60000" }] };

/** A client with a key that has these limits, and the status of each answer that it had so far. */
async function clientWith(limits: KeyLimits, maxRetries: number): Promise<{ client: OpenAI; statuses: number[] }> {
  const { endpoint } = await gateway.issue({ limits });
  const statuses: number[] = [];
  const fetchAndNote: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    statuses.push(response.status);
    return response;
  };
  const client = new OpenAI({ baseURL: endpoint.baseUrl, apiKey: endpoint.key, maxRetries, fetch: fetchAndNote });
  return { client, statuses };
}

const refusals: [string, KeyLimits, { code: string; type: string }][] = [
  ["requests of a minute", { requestsPerMinute: 1 }, { code: "rate_limit_exceeded", type: "requests" }],
  ["tokens of a minute", { tokensPerMinute: 10 }, { code: "rate_limit_exceeded", type: "tokens" }],
  ["its budget", { budget: { tokens: 10, per: "month" } }, { code: "insufficient_quota", type: "insufficient_quota" }],
];

test.each(refusals)("it throws RateLimitError when a key has used up the %s", async (_what, limits, told) => {
  const { client } = await clientWith(limits, 0);
  await client.chat.completions.create(chat);
  const error: unknown = await client.chat.completions.create(chat).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RateLimitError);
  expect(error).toMatchObject({ status: 429, ...told, requestID: expect.stringMatching(/^req_/) });
});

test("it throws RateLimitError when all seats of a key are taken", async () => {
  const { client } = await clientWith({ concurrency: 1 }, 0);
  const leaving = new AbortController();
  const seated = client.chat.completions.create(waiting, { signal: leaving.signal }).catch(() => "left");
  const refused = async (): Promise<unknown> => {
    const thrown: unknown = await client.chat.completions.create(chat).catch((error: unknown) => error);
    return thrown instanceof Error && thrown;
  };
  const error = await until(refused, { what: "the seat to be taken" });
  expect(error).toBeInstanceOf(RateLimitError);
  expect(error).toMatchObject({ status: 429, code: "concurrency_limit_exceeded", type: "requests" });
  leaving.abort();
  expect(await seated).toBe("left");
});

test("it tries again after as long as it was told, and then has its answer", async () => {
  const { client, statuses } = await clientWith({ requestsPerMinute: 60 }, 2);
  const unretried = client.withOptions({ maxRetries: 0 });
  const refusedFirst = async (): Promise<boolean> => {
    await Promise.allSettled(Array.from({ length: 80 }, () => unretried.chat.completions.create(chat)));
    statuses.splice(0);
    await client.chat.completions.create(chat);
    return statuses[0] === 429;
  };
  await until(refusedFirst, { what: "a request that is refused at first", timeoutMs: 15_000 });
  expect(statuses).toEqual([429, 200]);
});

test("it does not try again what is refused until a budget begins anew", async () => {
  const { client, statuses } = await clientWith({ budget: { tokens: 10, per: "month" } }, 2);
  await client.chat.completions.create(chat);
  await expect(client.chat.completions.create(chat)).rejects.toThrow(RateLimitError);
  expect(statuses).toEqual([200, 429]);
});
