import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Endpoint } from "../harness/endpoint.ts";
import { foundServers, lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { SiteOnRedis } from "../harness/site-on-redis.ts";
import { TcpProxy } from "../harness/tcp-proxy.ts";
import { until } from "../harness/until.ts";

const cannotFollow = lentOnly("redis") || foundServers().redis.by === "docker";

describe.skipIf(cannotFollow)("a Redis with a replica", () => {
  let site: SiteOnRedis;
  /** Between the replica and the primary. */
  let line: TcpProxy;
  let replica: OwnServer;
  let direct: Redis;
  let parts: AsyncDisposableStack;
  beforeEach(async () => {
    parts = new AsyncDisposableStack();
    site = parts.use(await SiteOnRedis.start({ logLevel: "info" }));
    line = parts.use(await TcpProxy.before(site.redis.url));
    const primary = new Redis(site.redis.url);
    await primary.config("SET", "repl-diskless-sync-delay", "0");
    primary.disconnect();
    replica = parts.use(await startRedisServer({ replicaOf: line.port }));
    direct = new Redis(replica.url);
    parts.defer(() => direct.disconnect());
    await until(async () => (await direct.info("replication")).includes("master_link_status:up"), {
      what: "the replica to follow its primary",
    });
  });
  afterEach(() => parts.disposeAsync());

  const has = async (id: string): Promise<boolean> => (await direct.exists(`trunkline:key:${id}`)) === 1;
  const copied = (id: string): Promise<true> => until(() => has(id), { what: "the replica to have the key" });
  async function failOver(): Promise<void> {
    await site.redis.kill();
    await direct.replicaof("NO", "ONE");
    site.network.leadTo(replica.url);
  }
  async function untilGatewayFollows(): Promise<void> {
    await using operator = await Operator.on({ redisUrl: replica.url });
    const { token } = await operator.issue();
    const endpoint = new Endpoint({ baseUrl: site.gateway.baseUrl, key: token.reveal() });
    const served = async (): Promise<boolean> => (await endpoint.models()).status === 200;
    await until(served, { what: "the gateway to use the promoted replica" });
  }

  test("a gateway keeps to every right that was taken away although the promoted replica never heard of it", async () => {
    const [revoked, disabled, narrowed] = [await site.knownKey(), await site.knownKey(), await site.knownKey()];
    const [rotated, untouched] = [await site.knownKey(), await site.knownKey()];
    const admin = await site.unknownKey({ kind: "admin" });
    await copied(admin.record.id);
    line.cut();
    line.refuse(true);
    await Promise.all([
      site.operator.change(revoked.record.id, { action: "revoked" }),
      site.operator.change(admin.record.id, { action: "revoked" }),
      site.operator.change(disabled.record.id, { action: "disabled" }),
      site.operator.change(narrowed.record.id, { action: "changed", terms: { scopes: ["nothing"] } }),
      site.operator.rotate(rotated.record.id, 0),
    ]);
    for (const { endpoint } of [revoked, disabled, rotated]) {
      await until(async () => (await endpoint.models()).status === 401, { what: "the key to be refused" });
    }
    await until(async () => (await narrowed.endpoint.models()).ids.length === 0, { what: "the scopes to be narrowed" });

    await failOver();
    await untilGatewayFollows();
    expect(await revoked.endpoint.judged()).toMatchObject({ status: 401, code: "key_invalid" });
    expect(await disabled.endpoint.judged()).toMatchObject({ status: 401, code: "key_invalid" });
    expect((await rotated.endpoint.judged()).status).toBe(401);
    expect(await narrowed.endpoint.judged()).toMatchObject({ status: 200, ids: [] });
    expect(await untouched.endpoint.judged()).toMatchObject({ status: 200, ids: expect.arrayContaining(["scripted"]) });
    expect((await admin.endpoint.get(`${site.gateway.operationsUrl}/admin/v1/keys`)).status).toBe(401);
    expect(site.gateway.logged.join("")).toContain("the key store lost a change");
  });

  test("a key that is enabled again after a failover works, and so does one whose terms are changed anew", async () => {
    const [disabled, narrowed] = [await site.knownKey(), await site.knownKey()];
    await copied(narrowed.record.id);
    line.cut();
    line.refuse(true);
    await site.operator.change(disabled.record.id, { action: "disabled" });
    await site.operator.change(disabled.record.id, { action: "enabled" });
    await site.operator.change(narrowed.record.id, { action: "changed", terms: { scopes: ["nothing"] } });
    await until(async () => (await narrowed.endpoint.models()).ids.length === 0, { what: "the scopes to be narrowed" });
    await failOver();
    await untilGatewayFollows();
    expect((await disabled.endpoint.judged()).status).toBe(200);
    await using operator = await Operator.on({ redisUrl: replica.url });
    await operator.change(narrowed.record.id, { action: "changed", terms: { scopes: ["scripted:plain"] } });
    await until(async () => (await narrowed.endpoint.models()).ids.length === 1, { what: "the new scopes to hold" });
  });

  test("a right that the command line takes back without a warning stays taken back where nothing but the replica is left", async () => {
    const { endpoint, record } = await site.knownKey();
    const { out, err } = await site.keys("revoke", record.id);
    await failOver();
    expect(out).toContain("is revoked");
    expect(err).not.toContain("replica");
    await using other = await startGatewayInProcess({ redisUrl: replica.url });
    expect(await endpoint.at(other.baseUrl).judged()).toMatchObject({ status: 401, code: "key_invalid" });
  });

  test.each([
    ["is silent", async () => line.hold("there")],
    ["is gone", async () => (line.refuse(true), line.cut())],
  ])("the command line and the admin API say that a replica which %s did not confirm", async (_, befalls) => {
    const admin = await site.admin();
    const keys = await Promise.all(Array.from({ length: 4 }, () => site.unknownKey()));
    const [one, two, three, four] = keys.map(({ record }) => record.id);
    const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> =>
      Object(await (await admin.send(method, path, body)).json());
    const isConfirmed = async (): Promise<boolean> =>
      (await ask("PATCH", `/keys/${one}`, { rpm: 5 }))["replicated"] === true;
    await until(isConfirmed, { what: "the replica to confirm a change" });
    await befalls();
    const warned = "No replica of Redis confirmed this within 1000 ms (replicaWaitMs)";
    expect((await site.keys("revoke", String(one))).err).toContain(warned);
    expect((await site.keys("extend", String(two))).err).not.toContain("replica");
    const [json, revoked, changed, bounded] = await Promise.all([
      site.keys("disable", String(two), "--json"),
      ask("DELETE", `/keys/${three}`),
      ask("PATCH", `/keys/${four}`, { scopes: ["a"] }),
      ask("PATCH", "/machines/attic", { models: ["llama*"] }),
    ]);
    expect(JSON.parse(json.out)).toMatchObject({ replicated: false });
    expect(revoked).toMatchObject({ state: "revoked", replicated: false });
    expect(changed).toMatchObject({ replicated: false });
    expect(bounded).toMatchObject({ machine: "attic", replicated: false });
    line.refuse(false);
    line.release();
    const confirmed = async (): Promise<boolean> => !(await site.keys("revoke", String(one))).err.includes(warned);
    await until(confirmed, { what: "the replica to confirm what is repeated", timeoutMs: 15_000 });
  });
});

test.skipIf(lentOnly("redis"))(
  "a Redis without a replica is never waited for, and nothing is said of one",
  async () => {
    await using site = await SiteOnRedis.start();
    const { record } = await site.unknownKey();
    expect(await site.operator.store.keys.awaitReplica()).toBe("none");
    const response = await (await site.admin()).send("DELETE", `/keys/${record.id}`);
    expect(await response.json()).toEqual({ id: record.id, state: "revoked", outcome: "changed" });
  },
);
