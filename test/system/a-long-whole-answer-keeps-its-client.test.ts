import OpenAI, { APIConnectionError } from "openai";
import { Agent } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";

const interimMs = 500;
const patienceMs = 2_000;
const waitMs = 3_800;

describe("a whole answer that takes longer than its client is patient", () => {
  let up: UpProcess;
  const agent = new Agent({ headersTimeout: patienceMs });
  beforeAll(async () => {
    up = await startUp({ TRUNKLINE_INTERIM_MS: String(interimMs) });
  });
  afterAll(async () => {
    await agent.close();
    await up?.[Symbol.asyncDispose]();
  });

  /** `agent` comes of another undici than the one that Node's types know. */
  const ask = (says: string, headers: Record<string, string | null> = {}) => {
    const { baseUrl: baseURL, key: apiKey } = up.endpoint;
    const fetchOptions = { dispatcher: agent } as object;
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, fetchOptions });
    const messages = [{ role: "user" as const, content: says }];
    return client.chat.completions.create({ model: "scripted", messages }, { headers });
  };
  const slow = `/script tokens=2 first_ms=${waitMs}`;

  test.concurrent("reaches an official client all the same", async () => {
    const { choices } = await ask(slow);
    expect(choices[0]?.message.content).toBe("token-0 token-1 ");
  });

  test.concurrent("and fails after all, fails with its true status and code", async () => {
    await expect(ask(`${slow} fail_at=0`)).rejects.toMatchObject({ status: 502, code: "upstream_error" });
  });

  test.concurrent("is not kept for a client behind a proxy, which may take what keeps it for the answer", async () => {
    await expect(ask(slow, { Via: "1.1 somebody" })).rejects.toThrow(APIConnectionError);
  });
});
