import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ChatFields, Endpoint } from "../harness/endpoint.ts";
import type { EventStream } from "../harness/event-stream.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { dumpOf } from "../harness/redis-server.ts";
import { SiteOnRedis, type KeyInUse } from "../harness/site-on-redis.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const prompt = "a canary sang to the prompt";
const answer = "canary-of-the-answer";
const endUser = "canary-of-the-app";
const healsWithinMs = 5_000;

describe.skipIf(lentOnly("redis"))("a key, a prompt and an answer", () => {
  let site: SiteOnRedis;
  /** What clients were told that is no answer: every error, and the headers of everything. */
  let told: string[];
  beforeEach(async () => {
    told = [];
    site = await SiteOnRedis.start({ logLevel: "trace" });
  });
  afterEach(() => site[Symbol.asyncDispose]());

  const says = (script: string, fields: object = {}): ChatFields => ({
    model: "scripted",
    user: endUser,
    says: `/script nonce=${answer} ${script}\n${prompt}`,
    ...fields,
  });

  async function ask(sent: Promise<Response>): Promise<number> {
    const response = await sent;
    const body = await response.text();
    told.push(JSON.stringify([...response.headers]));
    if (response.status !== 200) told.push(body);
    else expect(body).not.toBe("");
    return response.status;
  }
  async function ended(stream: EventStream): Promise<string> {
    await stream.over;
    const last = stream.events.at(-1) ?? "";
    told.push(JSON.stringify([...stream.response.headers]), last);
    return last;
  }
  async function begin(endpoint: Endpoint, signal?: AbortSignal): Promise<EventStream> {
    const stream = await endpoint.stream(says("tokens=1000 delay_ms=20"), signal);
    await until(() => stream.text.includes(answer), { what: "the first token" });
    return stream;
  }

  async function succeedAndFail({ endpoint }: KeyInUse): Promise<void> {
    expect(await ask(endpoint.chat(says("tokens=2")))).toBe(200);
    expect(await ended(await endpoint.stream(says("tokens=2")))).toBe("[DONE]");
    expect(await ask(endpoint.chat(says("tokens=2 fail_at=1")))).toBe(502);
    expect(await ended(await endpoint.stream(says("tokens=2 fail_at=1")))).toContain("upstream_error");
    for (const wrong of [{ temperature: prompt }, { stop: [prompt, 7] }, { messages: [{ role: prompt }] }]) {
      expect(await ask(endpoint.chat(says("tokens=2", wrong)))).toBe(400);
    }
    expect(await ask(endpoint.chat(says(`nonsense=${answer}`)))).toBe(400);
    expect(await ask(endpoint.chat(says("tokens=2", { model: "absent" })))).toBe(404);
    expect(await ask(endpoint.get(`/models/absent?key=${endpoint.key}`))).toBe(404);
    const leaving = new AbortController();
    const left = await begin(endpoint, leaving.signal);
    leaving.abort();
    await left.over;
  }

  async function presentWrongly({ endpoint }: KeyInUse): Promise<void> {
    const { key, baseUrl } = endpoint;
    const wrongChecksum = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
    for (const text of [wrongChecksum, `${key}x`, `x${key}`, key.replace("_", " ")]) {
      expect(await ask(endpoint.withKey(text).chat(says("tokens=2")))).toBe(401);
    }
    const operations = new URL(site.gateway.operationsUrl);
    const elsewhere: [string, Record<string, string>][] = [
      [`${baseUrl}/models?api_key=${key}`, {}],
      [`${baseUrl}/models`, { "x-api-key": `x${key}` }],
      [`${baseUrl}/models`, { authorization: `Basic ${key}` }],
      [`${operations.origin}/admin/v1/keys`, { authorization: `Bearer ${key}` }],
    ];
    for (const [url, headers] of elsewhere) expect(await ask(fetch(url, { headers }))).toBeGreaterThanOrEqual(400);
  }

  async function exceedLimits(limited: KeyInUse): Promise<void> {
    expect(await ask(limited.endpoint.chat(says("tokens=2")))).toBe(200);
    expect(await ask(limited.endpoint.chat(says("tokens=2")))).toBe(429);
    expect(await ask(limited.endpoint.chat(says("tokens=2", { stream: true })))).toBe(429);
  }

  async function loseRedis(known: KeyInUse, unknown: KeyInUse): Promise<void> {
    for (const [away, back] of [
      [() => site.redis.freeze(), () => site.redis.thaw()],
      [() => site.redis.kill(), () => site.redis.restart()],
    ] as const) {
      await away();
      expect(await ask(known.endpoint.chat(says("tokens=2")))).toBe(200);
      expect(await ask(unknown.endpoint.chat(says("tokens=2")))).toBe(503);
      await back();
      const healed = async (): Promise<true> => {
        for (const { store } of [site.gateway, site.operator]) await store.keys.ready();
        return true;
      };
      await until(healed, { what: "Redis to be back", timeoutMs: healsWithinMs });
    }
  }

  test("a key, a prompt and an answer, leave no trace, whatever becomes of a request, at the most talkative level of the log", async () => {
    const limits = { requestsPerMinute: 1, concurrency: 5, budget: { tokens: 1_000_000, per: "day" } } as const;
    const [known, limited, unknown] = [
      await site.knownKey({ endUsers: "field" }),
      await site.knownKey({ limits }),
      await site.unknownKey(),
    ];
    await site.untilAllIsHeard();
    await succeedAndFail(known);
    await presentWrongly(known);
    await exceedLimits(limited);
    await loseRedis(known, unknown);
    const rotated = await site.operator.rotate(known.record.id, 60_000);
    const stream = await begin(known.endpoint.withKey(rotated.reveal()));
    await site.operator.change(known.record.id, { action: "revoked" });
    expect(await ended(stream)).toContain("key_invalid");
    expect(await ask(known.endpoint.chat(says("tokens=2")))).toBe(401);
    const counted = async (): Promise<boolean> => (await site.operator.usageSum(known.record.id))?.requests === 13;
    await until(counted, { what: "what was used to be written" });
    const usage = await site.operator.usage();
    const trail = await site.operator.store.keys.log({ entriesMax: 1_000 });
    const metrics = await (await fetch(`${site.gateway.operationsUrl}/metrics`)).text();
    expect(metrics).toContain('outcome="upstream_error"');
    await site.gateway[Symbol.asyncDispose]();

    const redis = new Redis(site.redis.url);
    const dump = await dumpOf(redis);
    redis.disconnect();
    const log = site.gateway.logged.join("");
    expect(log).toContain('"msg":"request"');
    expect(log).toContain("Redis is away");
    for (const written of ["usage:", `end-user-names:${known.record.id}`])
      expect([...dump.keys()].some((name) => name.includes(written))).toBe(true);

    const tokens = [known, limited, unknown].map(({ token }) => token).concat(rotated);
    const secrets = tokens.map((token) => token.reveal().slice(-38, -6));
    const everything = {
      "the log": log,
      "the metrics": metrics,
      "what clients were told": told.join("\n"),
      "the audit trail": JSON.stringify(trail),
      "the usage": JSON.stringify(usage),
      Redis: [...dump].flat().join("\n"),
    };
    for (const [where, text] of Object.entries(everything)) {
      const found = [prompt, answer, endUser, testPepper, ...secrets].filter((canary) =>
        formsOf(canary).some((form) => text.includes(form)),
      );
      expect([where, found]).toEqual([where, []]);
    }

    const digests = tokens.map((token) => token.digest(site.gateway.store.peppers.current));
    const { Redis: _itself, ...outside } = everything;
    for (const digest of digests) for (const text of Object.values(outside)) expect(text).not.toContain(digest);
    for (const [at, digest] of digests.entries()) {
      const places = [...dump].filter((entry) => entry.join("").includes(digest)).map(([name]) => name);
      const { id } = tokens[at] ?? {};
      expect(places.length).toBeGreaterThan(0);
      for (const place of places) expect(place).toMatch(new RegExp(`:(?:key|tombstone):${id}$`));
    }
  });
});

/** How a text may look where somebody took it for bytes. */
function formsOf(text: string): string[] {
  const bytes = Buffer.from(text);
  return [text, bytes.toString("hex"), bytes.toString("base64").replace(/=+$/, ""), bytes.join(",")];
}
