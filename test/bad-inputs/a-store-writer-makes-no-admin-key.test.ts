import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KeyKind } from "#shared/keys/key-token.ts";
import { refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { SiteOnRedis, type KeyInUse } from "../harness/site-on-redis.ts";

describe.skipIf(lentOnly("redis"))("a person who can write any record in Redis and does not know the pepper", () => {
  let site: SiteOnRedis;
  let redis: Redis;
  beforeAll(async () => {
    site = await SiteOnRedis.start({ logLevel: "info" });
    redis = new Redis(site.redis.url);
  });
  afterAll(async () => {
    redis.disconnect();
    await site[Symbol.asyncDispose]();
  });

  const write = (key: KeyInUse, fields: object): Promise<number> =>
    redis.hset(
      `trunkline:key:${key.record.id}`,
      ...Object.entries(fields).flatMap(([field, value]) =>
        value === undefined ? [] : [field, JSON.stringify(value)],
      ),
    );
  const admin = (key: KeyInUse, path: string, method = "GET"): Promise<Response> =>
    key.endpoint.send(method, `${site.gateway.operationsUrl}/admin/v1${path}`);

  test.each(["admin", "viewer"] as const)(
    "a person who can write any record in Redis and does not know the pepper cannot turn a model key into a key of kind %s",
    async (kind) => {
      const key = await site.knownKey();
      await write(key, { kind });
      for (const path of ["/keys", "/log", "/fleet"]) {
        expect(await refusalOf(admin(key, path))).toMatchObject({ status: 401, code: "key_invalid" });
      }
      expect((await admin(key, `/keys/${key.record.id}/extend`, "POST")).status).toBe(401);
      expect(site.gateway.logged.join("")).toContain("was altered in the store");
    },
  );

  test("a person who can write any record in Redis and does not know the pepper cannot turn a key that only reads into an admin key", async () => {
    const viewer = await site.unknownKey({ kind: "viewer" });
    expect((await admin(viewer, "/keys")).status).toBe(200);
    await write(viewer, { kind: "admin" });
    expect((await admin(viewer, "/keys")).status).toBe(401);
    expect((await admin(viewer, `/keys/${viewer.record.id}/enable`, "POST")).status).toBe(401);
  });

  test("a person who can write any record in Redis and does not know the pepper cannot turn an admin key into a key that calls models", async () => {
    const key = await site.unknownKey({ kind: "admin" });
    await write(key, { kind: "model" });
    expect(await key.endpoint.models()).toMatchObject({ status: 401, code: "key_invalid" });
    expect((await admin(key, "/keys")).status).toBe(401);
  });

  test("a person who can write any record in Redis and does not know the pepper cannot put the digest of an own model key into the record of an admin key", async () => {
    const [own, victim] = [await site.unknownKey(), await site.unknownKey({ kind: "admin" })];
    await write(victim, { digest: own.record.digest });
    await write(own, { ...victim.record, digest: own.record.digest, id: own.record.id });
    expect((await admin(own, "/keys")).status).toBe(401);
    expect((await admin(victim, "/keys")).status).toBe(401);
  });

  test.each(["admin", "viewer"] as const)(
    "a person who can write any record in Redis and does not know the pepper cannot have a model key made one of kind %s by a rotation that expects a model key",
    async (kind: KeyKind) => {
      const key = await site.unknownKey();
      const console = await site.unknownKey({ kind: "admin" });
      await write(key, { kind });
      const refused = refusalOf(admin(console, `/keys/${key.record.id}/rotate`, "POST"));
      expect(await refused).toMatchObject({ status: 409, code: "key_change_refused" });
    },
  );

  test("a person who can write any record in Redis and does not know the pepper changes nothing for keys whose records nobody touched", async () => {
    const [model, console] = [await site.unknownKey(), await site.unknownKey({ kind: "admin" })];
    expect((await model.endpoint.models()).status).toBe(200);
    expect((await admin(console, "/keys")).status).toBe(200);
  });
});
