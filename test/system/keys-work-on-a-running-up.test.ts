import { afterAll, beforeAll, expect, test } from "vitest";
import { errorOf, type Endpoint } from "../harness/endpoint.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { issueKey } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

/** A revocation is not promised to be noticed at once, but soon. */
const revokedWithinMs = 2_000;

let up: UpProcess;
beforeAll(async () => void (up = await startUp()));
afterAll(() => up[Symbol.asyncDispose]());

const store = () => ({ TRUNKLINE_STATE_DIR: up.stateDir });
const withKey = (key: string): Endpoint => up.endpoint.withKey(key);

test("a key issued beside a running up works at once, for the models of its scopes and no others", async () => {
  const { key, scopes } = await issueKey(store(), "--scopes", "scripted:plain,scripted:v*");
  expect(scopes).toEqual(["scripted:plain", "scripted:v*"]);
  const scoped = withKey(key);
  expect((await scoped.models()).ids).toEqual(["scripted:plain", "scripted:vision"]);
  expect(await scoped.answer({ model: "scripted:plain", says: "/script tokens=1" })).toBe("token-0 ");

  const outside = await scoped.chat({ model: "scripted", says: "Hello" });
  const absent = await scoped.chat({ model: "scriptex", says: "Hello" });
  expect([outside.status, absent.status]).toEqual([404, 404]);
  const told = await errorOf(outside);
  expect(told).toMatchObject({ code: "model_not_found", param: "model" });
  expect(JSON.stringify(told).replaceAll("scripted", "scriptex")).toBe(JSON.stringify(await errorOf(absent)));
});

test("a key that is in nobody's scopes sees an empty list, and the site is healthy for it", async () => {
  const { key } = await issueKey(store(), "--scopes", "llama3.2");
  expect(await withKey(key).models()).toMatchObject({ status: 200, ids: [] });
});

test("a revoked key is 401 key_invalid, and revoking it again does no harm", async () => {
  const { id, key } = await issueKey(store());
  expect((await withKey(key).models()).status).toBe(200);
  const keys = (...args: string[]) => trunklineHere(["keys", ...args], store());
  expect(JSON.parse((await keys("revoke", id, "--json")).out)).toEqual({ id, outcome: "revoked" });
  await until(async () => (await withKey(key).models()).status === 401, {
    what: "the revoked key to be refused",
    timeoutMs: revokedWithinMs,
  });
  expect(await withKey(key).models()).toMatchObject({ status: 401, code: "key_invalid" });
  expect((await keys("revoke", id)).exitCode).toBe(0);
  const { out } = await keys("list");
  expect(out).toMatch(new RegExp(`${id}.*revoked`));
  expect(out).not.toContain(key.split("_")[2]);
});

test("a key whose time has elapsed is 401 key_expired, and a stream that it began goes on", async () => {
  const { key, expires_at: expiresAt } = await issueKey(store(), "--ttl", "1s");
  const stream = await withKey(key).stream({ model: "scripted", says: "/script tokens=75 delay_ms=20" });
  await until(() => Date.now() > Date.parse(expiresAt), { what: "the key's time to elapse" });
  expect(await withKey(key).models()).toMatchObject({ status: 401, code: "key_expired" });
  const chat = await withKey(key).chat({ model: "scripted", says: "Hello" });
  expect([chat.status, chat.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  await chat.body?.cancel();
  await stream.over;
  expect(stream.done).toBe(true);
});
