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
import { folderOfTests } from "../harness/temporary-folder.ts";
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

const hello = { says: "Hello" };
const nothingUsed = { promptTokens: 0, completionTokens: 0, answered: 0, firstTokenMs: 0 };

/** Each is one failed request. */
const refusals: readonly [string, number, Partial<ChatFields>, Way["counts"], Way["terms"]?][] = [
  ["a machine that fails at once", 502, { says: "/script fail_at=0" }, { model, ...nothingUsed }],
  [
    "a machine that fails in a whole answer, which is not delivered",
    502,
    { says: "/script tokens=5 fail_at=3" },
    { model },
  ],
  ["a request that is wrong", 400, { says: "Hello", temperature: 7 }, { model: null, ...nothingUsed }],
  ["a request that the machine finds wrong", 400, { says: "/script nonsense" }, { model, ...nothingUsed }],
  ["a model that does not exist", 404, { model: "absent", says: "Hello" }, { model: null, ...nothingUsed }],
  ["a model outside of the scopes", 404, hello, { model: null, ...nothingUsed }, { scopes: ["scripted:plain"] }],
  ["machines that are not there", 404, hello, { model: null, ...nothingUsed }, { machines: ["elsewhere"] }],
  ["a body that is too large", 413, { says: "x".repeat(bodyBytesMax) }, { model: null, ...nothingUsed }],
];

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
    title: "a machine that fails in the middle of a stream, for what was delivered",
    go: async (endpoint) => {
      const stream = await endpoint.stream({ model, says: "/script tokens=5 fail_at=3" });
      await stream.over;
      expect(stream.events.at(-1)).toContain("upstream_error");
    },
    counts: { model, failed: 1, completionTokens: 3, answered: 1 },
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
  ...refusals.map(([title, status, asked, counts, terms]): Way => {
    const go = (endpoint: Endpoint): Promise<void> => refused(endpoint, { model, ...asked }, status);
    return { title, go, counts: { failed: 1, ...counts }, ...(terms && { terms }) };
  }),
];

describe.each(["Redis", "SQLite"])("in %s", (kind) => {
  const stateDir = folderOfTests();
  let redis: SomeServer | undefined;
  let place: { redisUrl: string } | { stateDir: string };
  beforeAll(async () => {
    if (kind === "Redis") {
      redis = await redisUrl();
      place = { redisUrl: redis.url };
    } else place = { stateDir };
  });
  afterAll(() => redis?.stop());

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
    for (const { key, counts } of sent) await operator.booked(key, ({ requests }) => requests === counts.requests);
    await gateway[Symbol.asyncDispose]();
    for (const { key, title, counts } of sent) {
      expect(await operator.usage(key), title).toEqual([expect.objectContaining(counts)]);
    }
  });

  test.each([
    ["is left by its client", true],
    ["is cut off", false],
  ])("an answer that %s as its gateway stops is counted too", async (_what, leaves) => {
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
