import { checkKey } from "#shared/records/judge-key.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changeKey, type KeyChange } from "#shared/records/change-key.ts";
import { issueKey, type IssuedKey } from "#shared/records/issue-key.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { systemClock } from "#shared/process/clock.ts";
import { redisCommandTimeoutMs } from "#shared/process/redis-connection.ts";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { lentOnly } from "../harness/found-servers.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { until } from "../harness/until.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const healsWithinMs = 2_000;

describe.skipIf(lentOnly("redis"))("keys in a Redis that goes away", () => {
  let redis: OwnServer;
  let store: OpenedKeyStore;
  let issued: IssuedKey;

  let logged: string[];
  const log = { info: (text: string) => logged.push(text), warn: (text: string) => logged.push(text) };

  const open = (): Promise<OpenedKeyStore> =>
    openKeyStore({ redisUrl: redis.url, stateDir: "/nowhere", keyPepper: pepper }, { clock: systemClock, log });
  const outcome = async (): Promise<string> =>
    (await checkKey({ token: issued.token, keys: store.keys, peppers: store.peppers, nowMs: Date.now() })).outcome;
  const changed = async (change: KeyChange): Promise<string> => {
    const { keys } = store;
    return (await changeKey(issued.token.id, change, { keys, clock: systemClock, actor: { by: "the operator" } }))
      .outcome;
  };

  beforeEach(async () => {
    logged = [];
    redis = await startRedisServer({ persistent: true });
    store = await open();
    const key = { name: "alice", scopes: ["*"], ttlMs: 60_000 };
    const { keys, peppers } = store;
    issued = await issueKey(key, { keys, peppers, clock: systemClock, actor: { by: "the operator" } });
  });
  afterEach(async () => {
    await store.keys.close();
    await redis.stop();
  });

  test("a change while it is away fails at once, and is made once by who tries until it is", async () => {
    const disable = (): Promise<string> => changed({ action: "disabled" });
    await redis.kill();
    await expect(disable()).rejects.toMatchObject({ code: "backend_unavailable" });
    await redis.restart();
    const what = "the key to be disabled";
    await until(() => disable().catch(() => undefined), { what, timeoutMs: healsWithinMs });
    expect(await outcome()).toBe("disabled");
    const trail = await store.keys.log({ entriesMax: 10 });
    expect(trail.map(({ action }) => action)).toEqual(["issued", "disabled"]);
  });

  test("a pause of one's own is not blamed on Redis", async () => {
    const answer = outcome();
    const endMs = performance.now() + 2 * redisCommandTimeoutMs;
    while (performance.now() < endMs);
    expect(await answer).toBe("valid");
  });

  test("the report of it does not hold the key or its digest", async () => {
    await redis.freeze();
    const fault: unknown = await outcome().catch((error: unknown) => error);
    const told = JSON.stringify(fault, Object.getOwnPropertyNames(fault)) + String(fault);
    expect(told).toContain("no reply within 150 ms");
    for (const secret of [issued.token.reveal(), issued.record.digest]) expect(told).not.toContain(secret);
  });

  test("a start ends soon, with one line that says where Redis should be", async () => {
    await redis.freeze();
    const refusal = {
      name: "StartFailure",
      exitCode: exitCodes.unavailable,
      message: expect.stringMatching(/^Redis at 127\.0\.0\.1:\d+ .*TRUNKLINE_REDIS_URL/),
    };
    await expect(open()).rejects.toMatchObject(refusal);
    await redis.kill();
    await expect(open()).rejects.toMatchObject(refusal);
  });
});
