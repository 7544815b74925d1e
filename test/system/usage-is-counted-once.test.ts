import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { NewKey } from "#shared/records/issue-key.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import { estimateTexts } from "../../services/gateway/limits/token-estimates.ts";
import { errorOf, type ChatFields, type Endpoint } from "../harness/endpoint.ts";
import type { EventStream } from "../harness/event-stream.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { Operator } from "../harness/operator.ts";
import { until } from "../harness/until.ts";

const bodyBytesMax = 2_000;
const model = "scripted";
/** Says five tokens, and then nothing more. */
const stuck: ChatFields = { model, says: "/script tokens=10 stall_at=5" };
const fiveTokens = "token-0 token-1 token-2 token-3 token-4 ";
const promptOf = ({ says = "" }: ChatFields): number => estimateTexts([says]);

interface Way {
  readonly title: string;
  readonly terms?: Partial<NewKey>;
  /** Sends requests until they have ended; how many says `requests`, one unless told. */
  readonly go: (endpoint: Endpoint, revoke: () => Promise<void>) => Promise<void>;
  readonly requests?: number;
  readonly counts: Partial<UsageRow>;
}

const nothingUsed = { promptTokens: 0, completionTokens: 0, answered: 0, firstTokenMs: 0 };

/** Every way in which a request with a proven key can end, and what is counted of it. */
const ways: readonly Way[] = [
  {
    title: "a whole answer",
    go: async (endpoint) => void (await endpoint.answer({ model, says: "/script tokens=7" })),
    counts: { model, failed: 0, promptTokens: 2, completionTokens: 7, answered: 0, firstTokenMs: 0 },
  },
  {
    title: "a stream",
    go: async (endpoint) => void (await (await endpoint.stream({ model, says: "/script tokens=8" })).over),
    counts: { model, failed: 0, promptTokens: 2, completionTokens: 8, answered: 1 },
  },
  {
    title: "a stream that its client leaves, for what it was delivered",
    go: async (endpoint) => {
      const leaving = new AbortController();
      const stream = await startStuck(endpoint, leaving.signal);
      leaving.abort();
      await stream.over;
    },
    counts: { model, failed: 1, promptTokens: promptOf(stuck), completionTokens: 5, answered: 1 },
  },
  {
    title: "a stream whose key is revoked, for what it was delivered",
    go: async (endpoint, revoke) => {
      const stream = await startStuck(endpoint);
      await revoke();
      await stream.over;
      expect(stream.events.at(-1)).toContain("key_invalid");
    },
    counts: { model, failed: 1, promptTokens: promptOf(stuck), completionTokens: 5, answered: 1 },
  },
  {
    title: "a client that leaves before there is an answer, for the prompt that the machine worked on",
    go: async (endpoint) => {
      const leaving = new AbortController();
      const answer = endpoint.chat({ model, says: "/script first_ms=60000" }, leaving.signal).catch(() => "left");
      const seated = async (): Promise<boolean> => {
        const response = await endpoint.get("/models");
        await response.text();
        return response.headers.get("x-ratelimit-remaining-requests") === "9";
      };
      await until(seated, { what: "the request to be under way" });
      leaving.abort();
      expect(await answer).toBe("left");
    },
    terms: { limits: { requestsPerMinute: 10 } },
    counts: { model, failed: 1, ...nothingUsed, promptTokens: promptOf({ model, says: "/script first_ms=60000" }) },
  },
  {
    title: "a machine that fails at once",
    go: (endpoint) => refused(endpoint, { model, says: "/script fail_at=0" }, 502),
    counts: { model, failed: 1, ...nothingUsed },
  },
  {
    title: "a machine that fails in the middle of a stream, for what was delivered",
    go: async (endpoint) => {
      const stream = await endpoint.stream({ model, says: "/script tokens=5 fail_at=3" });
      await stream.over;
      expect(stream.events.at(-1)).toContain("upstream_error");
    },
    counts: { model, failed: 1, completionTokens: 3, answered: 1 },
  },
  {
    title: "a machine that fails before a whole answer is complete, of which nothing is delivered",
    go: (endpoint) => refused(endpoint, { model, says: "/script tokens=5 fail_at=3" }, 502),
    counts: { model, failed: 1 },
  },
  {
    title: "a request that is wrong",
    go: (endpoint) => refused(endpoint, { model, says: "Hello", temperature: 7 }, 400),
    counts: { model: null, failed: 1, ...nothingUsed },
  },
  {
    title: "a request that the machine finds wrong",
    go: (endpoint) => refused(endpoint, { model, says: "/script nonsense" }, 400),
    counts: { model, failed: 1, ...nothingUsed },
  },
  {
    title: "a model that does not exist, and is not written down",
    go: (endpoint) => refused(endpoint, { model: "absent", says: "Hello" }, 404),
    counts: { model: null, failed: 1, ...nothingUsed },
  },
  {
    title: "a model that is outside of the key's scopes",
    terms: { scopes: ["scripted:plain"] },
    go: (endpoint) => refused(endpoint, { model, says: "Hello" }, 404),
    counts: { model: null, failed: 1, ...nothingUsed },
  },
  {
    title: "a key that is bound to machines which are not there",
    terms: { machines: ["elsewhere"] },
    go: (endpoint) => refused(endpoint, { model, says: "Hello" }, 404),
    counts: { model: null, failed: 1, ...nothingUsed },
  },
  {
    title: "a request that its key's limits do not allow",
    terms: { limits: { requestsPerMinute: 1 } },
    go: async (endpoint) => {
      await endpoint.answer({ model, says: "/script tokens=7" });
      await refused(endpoint, { model, says: "/script tokens=7" }, 429);
    },
    requests: 2,
    counts: { model, failed: 1, promptTokens: 2, completionTokens: 7, answered: 0 },
  },
  {
    title: "a body that is too large",
    go: (endpoint) => refused(endpoint, { model, says: "x".repeat(bodyBytesMax) }, 413),
    counts: { model: null, failed: 1, ...nothingUsed },
  },
];

describe.each(["Redis", "SQLite"])("in %s", (kind) => {
  let redis: SomeServer | undefined;
  let place: { redisUrl: string } | { stateDir: string };
  beforeAll(async () => {
    if (kind === "Redis") {
      redis = await redisUrl();
      place = { redisUrl: redis.url };
    } else place = { stateDir: await mkdtemp(join(tmpdir(), "trunkline-usage-")) };
  });
  afterAll(async () => {
    await redis?.stop();
    if ("stateDir" in place) await rm(place.stateDir, { recursive: true });
  });

  async function start(): Promise<{ gateway: GatewayInProcess; operator: Operator }> {
    const gateway = await startGatewayInProcess({
      ...place,
      env: { TRUNKLINE_BODY_BYTES_MAX: String(bodyBytesMax) },
    });
    onTestFinished(() => gateway[Symbol.asyncDispose]());
    const operator = await Operator.on(place);
    onTestFinished(() => operator[Symbol.asyncDispose]());
    return { gateway, operator };
  }

  test("every way in which a request can end is counted once, as it was, however many end at once", async () => {
    const { gateway, operator } = await start();
    const threeOfEach = Array.from({ length: 3 }, () => ways).flat();
    const sending = threeOfEach.map(async ({ title, go, terms, requests = 1, counts }) => {
      const { endpoint, record } = await gateway.issue(terms);
      await go(endpoint, () => operator.change(record.id, { action: "revoked" }));
      return { key: record.id, title, counts: { requests, ...counts } };
    });
    const sent = await Promise.all(sending);
    for (const { key, counts } of sent) {
      const all = async (): Promise<boolean> => (await operator.usageSum(key))?.requests === counts.requests;
      await until(all, { what: "all to be counted" });
    }
    await gateway[Symbol.asyncDispose]();
    for (const { key, title, counts } of sent) {
      expect(await operator.usage(key), title).toEqual([expect.objectContaining(counts)]);
    }
  });

  test.each([
    ["is left by its client", true],
    ["is cut off", false],
  ])("what %s as its gateway stops is counted too", async (_what, leaves) => {
    const { gateway, operator } = await start();
    const { endpoint, record } = await gateway.issue();
    const leaving = new AbortController();
    await startStuck(endpoint, leaving.signal);
    if (leaves) leaving.abort();
    await gateway[Symbol.asyncDispose]();
    expect(await operator.usageSum(record.id)).toMatchObject({ requests: 1, failed: 1, completionTokens: 5 });
  });
});

async function startStuck(endpoint: Endpoint, signal?: AbortSignal): Promise<EventStream> {
  const stream = await endpoint.stream(stuck, signal);
  await until(() => stream.text === fiveTokens, { what: "all that is said" });
  return stream;
}

async function refused(endpoint: Endpoint, fields: ChatFields, status: number): Promise<void> {
  const response = await endpoint.chat(fields);
  expect([response.status, await errorOf(response)]).toEqual([status, expect.anything()]);
}
