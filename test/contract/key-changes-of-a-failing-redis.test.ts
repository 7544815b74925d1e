import type { KeyChanges } from "#shared/records/key-changes.ts";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KeyId } from "#shared/keys/key-token.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { systemClock } from "#shared/process/clock.ts";
import { lentOnly } from "../harness/found-servers.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { TcpProxy } from "../harness/tcp-proxy.ts";
import { until } from "../harness/until.ts";
import { HeardChanges } from "./key-changes-heard.ts";
import { issueOn } from "./key-changes.contract.ts";
import { pepper } from "./key-store-means.ts";

/** What a gateway counts on: below the time for which it trusts what it knows. */
const awayWithinMs = 2_500;
const healsWithinMs = 3_000;

describe.skipIf(lentOnly("redis"))("changes of keys in a Redis that fails", () => {
  let redis: OwnServer;
  /** Between the follower and Redis; keys are changed past it. */
  let proxy: TcpProxy;
  let direct: Redis;
  let store: OpenedKeyStore;
  let changes: KeyChanges;
  let heard: HeardChanges;

  const open = (redisUrl: string): Promise<OpenedKeyStore> =>
    openKeyStore({ redisUrl, stateDir: "/nowhere", keyPepper: pepper }, { clock: systemClock });

  beforeEach(async () => {
    redis = await startRedisServer({ persistent: true });
    proxy = await TcpProxy.before(redis.url);
    direct = new Redis(redis.url);
    direct.on("error", () => undefined);
    store = await open(redis.url);
    await issue();
    const far = await open(`redis://127.0.0.1:${proxy.port}`);
    changes = await far.openChanges();
    await far.keys.close();
    heard = new HeardChanges(changes);
    await heard.untilTold("gap");
  });
  afterEach(async () => {
    changes.close();
    await store.keys.close();
    direct.disconnect();
    await proxy[Symbol.asyncDispose]();
    await redis.stop();
  });

  /** Tried again where this process was too busy to hear Redis in time: what counts is what the trail holds. */
  const issue = (): Promise<KeyId> => until(() => issueOn(store.keys), { what: "a key to be issued" });
  const untilIssued = (): Promise<KeyId> =>
    until(() => issue().catch(() => undefined), { what: "a key to be issued", timeoutMs: healsWithinMs });
  const untilHeard = (since: number) => heard.untilTold("heard", { since, timeoutMs: healsWithinMs });

  /** The follower's own connection, found by the command that it waits in. */
  async function waitingClients(): Promise<string[]> {
    const clients = String(await direct.client("LIST")).split("\n");
    return clients.flatMap((line) => /^id=(\d+) .* cmd=xread /.exec(line)?.[1] ?? []);
  }
  const waitingClient = (): Promise<string> =>
    until(async () => (await waitingClients())[0], { what: "the follower to wait for changes" });

  /** All that the trail holds since following began was told, in its order, and without a gap. */
  async function expectNoneMissed(): Promise<void> {
    const [, ...trail] = (await store.keys.log({ entriesMax: 1_000 })).map(({ key }) => key);
    await heard.untilIds(trail.length);
    expect(heard.ids).toEqual(trail);
    expect(heard.gaps).toBe(1);
  }

  test("a connection that is killed while keys are changed loses no change", async () => {
    for (let kills = 0; kills < 5; kills += 1) {
      await direct.client("KILL", "ID", await waitingClient());
      for (let keys = 0; keys < 10; keys += 1) await issue();
    }
    await expectNoneMissed();
  });

  test.each(["there", "back"] as const)(
    "a network that lets nothing %s is told within 2.5 s, and what was changed meanwhile afterwards",
    async (direction) => {
      await waitingClient();
      const mark = heard.mark();
      proxy.hold(direction);
      await issue();
      await heard.untilTold("away", { since: mark, timeoutMs: awayWithinMs });
      await issue();
      proxy.cut();
      proxy.release();
      await expectNoneMissed();
      await untilHeard(heard.mark());
    },
  );

  test("a slow network makes changes late and loses none", async () => {
    proxy.latencyMs = 200;
    for (let keys = 0; keys < 3; keys += 1) await issue();
    await expectNoneMissed();
    await untilHeard(heard.mark());
    expect(heard.since(0)).not.toContain("away");
  });

  test("frozen, it is away within 2.5 s, and heard again when thawed", async () => {
    const mark = heard.mark();
    await redis.freeze();
    await heard.untilTold("away", { since: mark, timeoutMs: awayWithinMs });
    await redis.thaw();
    await untilHeard(heard.mark());
    await untilIssued();
    await expectNoneMissed();
  });

  test("killed and restarted with its data, it has lost no change", async () => {
    await issue();
    await heard.untilIds(1);
    const mark = heard.mark();
    await redis.kill();
    await heard.untilTold("away", { since: mark, timeoutMs: awayWithinMs });
    await redis.restart();
    await untilIssued();
    await expectNoneMissed();
    await untilHeard(mark);
  });

  test("emptied, it is away until a key is issued, and then there is a gap", async () => {
    const mark = heard.mark();
    await direct.flushall();
    await heard.untilTold("away", { since: mark, timeoutMs: awayWithinMs });
    const emptied = heard.mark();
    await issue();
    await untilHeard(emptied);
    expect(heard.since(emptied)).toContain("gap");
  });

  test("emptied and begun anew before the follower looked, there is a gap", async () => {
    await waitingClient();
    const mark = heard.mark();
    await direct.flushall();
    await issue();
    await heard.untilTold("gap", { since: mark, timeoutMs: healsWithinMs });
  });

  test("a change that is still on its way when it is closed is not told", async () => {
    await waitingClient();
    proxy.hold("back");
    await issue();
    await until(() => proxy.bytesWaiting > 0, { what: "the change to be on its way" });
    const mark = heard.mark();
    changes.close();
    proxy.release();
    await until(async () => (await waitingClients()).length === 0, { what: "the connection to end" });
    expect(heard.since(mark)).toEqual(new Set());
  });

  test("given back an older copy, there is a gap", async () => {
    const trail = "trunkline:audit";
    const copy = await direct.dumpBuffer(trail);
    await issue();
    await heard.untilIds(1);
    const mark = heard.mark();
    await direct.restore(trail, 0, copy, "REPLACE");
    await direct.client("KILL", "ID", await waitingClient());
    await heard.untilTold("gap", { since: mark, timeoutMs: healsWithinMs });
  });
});
