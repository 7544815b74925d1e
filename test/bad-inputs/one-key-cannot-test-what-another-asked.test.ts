import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { NewKey } from "#shared/records/issue-key.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type FleetWish } from "../harness/start-fleet.ts";

const chatModel = "Qwen/Qwen3-8B";

/** One site whose operator has chosen how keys share what runtimes have cached. */
async function startSite({ machines, ...wish }: FleetWish) {
  const parts = new AsyncDisposableStack();
  const vllm = await FakeVllm.start();
  parts.defer(() => vllm.stop());
  const env = { TRUNKLINE_RUNTIME: "vllm", TRUNKLINE_RUNTIME_URL: vllm.url };
  const fleet = parts.use(await startFleet({ ...wish, machines: { ...machines, gpu: { env } } }));
  const operator = parts.use(await Operator.on({ redisUrl: fleet.redis.url }));
  for (const endpoint of fleet.endpoints) await endpoint.untilListed(chatModel);
  return { vllm, fleet, operator, stop: () => parts.disposeAsync() };
}

type Site = Awaited<ReturnType<typeof startSite>>;

async function issue(
  { fleet, operator }: Site,
  terms: Partial<NewKey> = {},
): Promise<{ id: KeyId; endpoint: Endpoint }> {
  const { token, record } = await operator.issue(terms);
  return { id: record.id, endpoint: fleet.endpoint.withKey(token.reveal()) };
}

/** The salt that vLLM was sent with this chat, or nothing. */
async function saltOf({ vllm }: Site, endpoint: Endpoint, fields: object = {}): Promise<unknown> {
  const response = await endpoint.chat({ model: chatModel, says: "Hello", ...fields });
  expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
  return vllm.chats.at(-1)?.body["cache_salt"];
}

/** Which machine answered a prompt that is long enough to be worth finding again. */
async function answeredBy(endpoint: Endpoint, nonce: number): Promise<string | null> {
  const says = `/script tokens=1 nonce=n${nonce}\n${"The same long words. ".repeat(200)}${nonce}`;
  const response = await endpoint.chat({ model: "scripted", says });
  expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
  return response.headers.get("x-trunkline-machine");
}

/** Asks prompts with keys that are bound to one machine each, then with a free key: how often that gets the same machine. */
async function sameMachine(site: Site): Promise<number> {
  const [attic, cellar] = await Promise.all(["attic", "cellar"].map((machine) => issue(site, { machines: [machine] })));
  const { endpoint: other } = await issue(site);
  let same = 0;
  for (let nonce = 0; nonce < prompts; nonce += 1) {
    const machine = await answeredBy((nonce % 2 === 0 ? attic : cellar)?.endpoint ?? other, nonce);
    if ((await answeredBy(other, nonce)) === machine) same += 1;
  }
  return same;
}
const prompts = 24;
const aSalt = expect.stringMatching(/^[0-9a-f]{32}$/);

describe.skipIf(lentOnly("nats", "redis"))("at a site whose keys are of different people", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({
      gateways: 2,
      machines: { attic: { models: ["scripted"] }, cellar: { models: ["scripted"] } },
    });
  });
  afterAll(() => site?.stop());

  test("the machine that answers does not tell a key whether another key asked the same prompt", async () => {
    expect(await sameMachine(site)).toBeLessThan(prompts);
  });

  test("vLLM is sent a salt with every request, the same for one key at every gateway and another for each key", async () => {
    const [one, other] = [await issue(site), await issue(site)];
    const there = one.endpoint.at(site.fleet.endpoints[1]?.baseUrl ?? "");
    const salts = [await saltOf(site, one.endpoint), await saltOf(site, there), await saltOf(site, other.endpoint)];
    expect(salts).toEqual([aSalt, salts[0], aSalt]);
    expect(salts[2]).not.toBe(salts[0]);
  });

  test("vLLM is sent the salt of a key with the texts that it continues too", async () => {
    const { endpoint } = await issue(site);
    const salt = await saltOf(site, endpoint);
    expect(salt).toEqual(aSalt);
    const response = await fetch(`${endpoint.baseUrl}/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${endpoint.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: chatModel, prompt: "Hello" }),
    });
    expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
    expect(site.vllm.texts.at(-1)?.body["cache_salt"]).toBe(salt);
  });

  test("a salt stays when its key is rotated, so that conversations keep what is cached of them", async () => {
    const { id, endpoint } = await issue(site);
    const salt = await saltOf(site, endpoint);
    expect(salt).toEqual(aSalt);
    const rotated = await site.operator.rotate(id, 0);
    expect(await saltOf(site, endpoint.withKey(rotated.reveal()))).toBe(salt);
  });

  test("a salt is no plain hash of its key's id, which machines know", async () => {
    const { id, endpoint } = await issue(site);
    const salt = String(await saltOf(site, endpoint));
    expect(salt).toEqual(aSalt);
    for (const name of ["sha256", "sha1", "md5"]) {
      expect(createHash(name).update(id).digest("hex").startsWith(salt)).toBe(false);
    }
  });

  test("a client cannot choose a salt", async () => {
    const { endpoint } = await issue(site);
    const salt = await saltOf(site, endpoint);
    expect(salt).toEqual(aSalt);
    expect(await saltOf(site, endpoint, { cache_salt: "theirs" })).toBe(salt);
  });
});

describe.skipIf(lentOnly("nats", "redis"))("at a site of one tenant that shares its prompt caches", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ machines: {}, gatewayEnv: { TRUNKLINE_PROMPT_CACHE: "shared" } });
  });
  afterAll(() => site?.stop());

  test("vLLM is sent no salt, so that all keys share what it has cached", async () => {
    expect(await saltOf(site, (await issue(site)).endpoint)).toBeUndefined();
  });
});
