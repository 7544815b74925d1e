import { adminLineageMax } from "#shared/records/key-lineage.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changeKey, revokeKey } from "#shared/records/change-key.ts";
import { issueKey } from "#shared/records/issue-key.ts";
import { keyId, type KeyId } from "#shared/keys/key-token.ts";
import { redisPlace, sqlitePlace } from "../contract/key-store-place.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { AdminOnStore, type Method, type Told } from "../unit/gateway/operations/admin-on-a-store.ts";
import { commandLine } from "../unit/cli/command-line.ts";

const dayMs = 86_400_000;

let redis: SomeServer;
beforeAll(async () => void (redis = await redisUrl()));
afterAll(() => redis.stop());

interface Held {
  readonly id: KeyId;
  readonly key: string;
  readonly expiresAtMs: number;
  ask(method: Method, path: string, body?: unknown): Promise<Told>;
  mint(kind: string, ttl?: string): Promise<Held>;
}

async function startAdmin(place: { open(): ReturnType<Awaited<ReturnType<typeof sqlitePlace>>["open"]> }) {
  const api = new AdminOnStore(await place.open());
  const held = (id: string, key: string, expiresAtMs: number): Held => {
    const ask = (method: Method, path: string, body?: unknown): Promise<Told> => api.ask(method, path, { key, body });
    const mint = async (kind: string, ttl = "30d"): Promise<Held> => {
      const { status, json } = await ask("POST", "/keys", { name: `a ${kind} key`, kind, ttl });
      if (status !== 201) throw new Error(`the key was not issued: ${status} ${JSON.stringify(json)}`);
      return held(String(json["id"]), String(json["key"]), Date.parse(String(json["expires_at"])));
    };
    return { id: keyId.parse(id), key, expiresAtMs, ask, mint };
  };
  const root = async (kind: "admin" | "viewer" = "admin", ttlMs = 10 * dayMs): Promise<Held> => {
    const { token, record } = await api.issue({ kind, ttlMs, name: "root" });
    return held(record.id, token.reveal(), record.expiresAt);
  };
  const stateOf = async (id: KeyId): Promise<string> => {
    const found = await api.keys.find(id);
    if (found.kind !== "record") return found.kind;
    return found.record.revokedAt === undefined ? "stands" : "revoked";
  };
  return { api, root, stateOf };
}

const refused = { status: 409, json: { error: { code: "key_change_refused" } } };

describe.each([
  ["SQLite", sqlitePlace],
  ["Redis", () => redisPlace(redis.url)],
])("on %s", (_, makePlace) => {
  test("an admin key cannot extend itself, nor be extended by an admin key that it issued or that is a stranger", async () => {
    const { root } = await startAdmin(await makePlace());
    const [one, other] = [await root(), await root()];
    const below = await one.mint("admin");
    for (const asker of [one, below, other]) {
      expect(await asker.ask("POST", `/keys/${one.id}/extend`, { ttl: "90d" })).toMatchObject(refused);
    }
    expect((await one.ask("GET", `/keys/${one.id}`)).json["expires_at"]).toBe(new Date(one.expiresAtMs).toISOString());
  });

  test("an admin key that an admin key issues or extends never outlives its issuer", async () => {
    const { api, root } = await startAdmin(await makePlace());
    const one = await root();
    const below = await one.mint("admin", "90d");
    const furtherBelow = await below.mint("admin", "90d");
    expect([below.expiresAtMs, furtherBelow.expiresAtMs]).toEqual([one.expiresAtMs, one.expiresAtMs]);
    api.clock.advance(dayMs);
    const short = await one.mint("admin", "1d");
    const extended = await one.ask("POST", `/keys/${short.id}/extend`, { ttl: "90d" });
    expect(extended.json["expires_at"]).toBe(new Date(one.expiresAtMs).toISOString());
  });

  test("an admin key gets no secret of an admin key that it did not issue, and enables none", async () => {
    const { api, root, stateOf } = await startAdmin(await makePlace());
    const [one, other] = [await root(), await root()];
    const below = await one.mint("admin");
    for (const target of [other, one]) {
      expect(await below.ask("POST", `/keys/${target.id}/rotate`, { kind: "admin" })).toMatchObject(refused);
    }
    await changeKey(other.id, { action: "disabled" }, api.means());
    expect(await one.ask("POST", `/keys/${other.id}/enable`)).toMatchObject(refused);
    expect((await one.ask("POST", `/keys/${below.id}/rotate`, { kind: "admin" })).status).toBe(200);
    expect(await stateOf(other.id)).toBe("stands");
  });

  test("a revoked admin key takes the admin and viewer keys along that it issued, through others too, and names the model keys", async () => {
    const { api, root, stateOf } = await startAdmin(await makePlace());
    const [one, other] = [await root(), await root()];
    const second = await one.mint("admin");
    const third = await second.mint("admin");
    const viewer = await third.mint("viewer");
    const [model, deepModel] = [await one.mint("model", "3650d"), await third.mint("model", "3650d")];
    const [stranger, strangersModel] = [await other.mint("admin"), await other.mint("model")];
    const { json } = await other.ask("POST", `/keys/${one.id}/revoke`);
    expect(json).toMatchObject({ id: one.id, state: "revoked" });
    expect(new Set(json["revoked_with_it"] as string[])).toEqual(new Set([second.id, third.id, viewer.id]));
    expect(new Set(json["issued_and_stay"] as string[])).toEqual(new Set([model.id, deepModel.id]));
    for (const gone of [one, second, third, viewer]) {
      expect(await stateOf(gone.id)).toBe("revoked");
      expect((await gone.ask("GET", "/keys")).status).toBe(401);
    }
    for (const left of [model, deepModel, stranger, strangersModel]) expect(await stateOf(left.id)).toBe("stands");
    expect((await stranger.ask("GET", "/keys")).status).toBe(200);
    const [entry] = (await api.keys.log({ entriesMax: 100, keys: [third.id] })).slice(-1);
    expect(entry).toMatchObject({ action: "revoked", by: `admin ${other.id}`, detail: { with: one.id } });
  });

  test("the model keys of a revoked admin key go too where that is asked for, also at a second time", async () => {
    const { root, stateOf } = await startAdmin(await makePlace());
    const [one, other] = [await root(), await root()];
    const second = await one.mint("admin");
    const models = [await one.mint("model"), await second.mint("model")];
    await other.ask("DELETE", `/keys/${one.id}`);
    for (const { id } of models) expect(await stateOf(id)).toBe("stands");
    const { json } = await other.ask("DELETE", `/keys/${one.id}?with_issued=true`);
    expect(new Set(json["revoked_with_it"] as string[])).toEqual(new Set(models.map(({ id }) => id)));
    expect(json["issued_and_stay"]).toBeUndefined();
    for (const { id } of models) expect(await stateOf(id)).toBe("revoked");
  });

  test("an admin key whose issuer is revoked or disabled does nothing, also where its own record still stands", async () => {
    const { api, root, stateOf } = await startAdmin(await makePlace());
    const one = await root();
    const third = await (await one.mint("admin")).mint("admin");
    await changeKey(one.id, { action: "disabled" }, api.means());
    expect(await third.ask("GET", "/keys")).toMatchObject({ status: 401, json: { error: { code: "key_invalid" } } });
    await changeKey(one.id, { action: "enabled" }, api.means());
    expect((await third.ask("GET", "/keys")).status).toBe(200);
    await changeKey(one.id, { action: "revoked" }, api.means());
    expect(await stateOf(third.id)).toBe("stands");
    expect(await third.ask("POST", "/keys", { name: "late", kind: "admin" })).toMatchObject({ status: 401 });
    const again = await revokeKey({ id: one.id, withIssued: false }, { ...api.means(), keys: api.keys });
    expect(again.revoked.map(({ id }) => id)).toContain(third.id);
  });

  test("admin keys issue admin keys down to adminLineageMax, and the refusal names it", async () => {
    const { root } = await startAdmin(await makePlace());
    let last = await root();
    for (let depth = 1; depth < adminLineageMax; depth += 1) last = await last.mint("admin");
    const told = await last.ask("POST", "/keys", { name: "one too many", kind: "admin" });
    expect(told).toMatchObject({
      status: 409,
      json: { error: { message: expect.stringContaining("adminLineageMax") } },
    });
    expect((await last.ask("GET", "/keys")).status).toBe(200);
    expect((await last.ask("POST", "/keys", { name: "a model key" })).status).toBe(201);
  });

  test("a viewer key reads everything on the admin API, changes nothing and calls no models", async () => {
    const { api, root } = await startAdmin(await makePlace());
    const viewer = await root("viewer", 365 * dayMs);
    const target = await (await root()).mint("model");
    for (const path of ["/keys", `/keys/${target.id}`, "/log", "/usage", "/models", "/fleet", "/route?model=a"]) {
      expect((await viewer.ask("GET", path)).status, path).toBe(200);
    }
    const entries = await api.keys.log({ entriesMax: 100 });
    for (const [method, path] of [
      ["POST", "/keys"],
      ["PATCH", `/keys/${target.id}`],
      ["DELETE", `/keys/${target.id}`],
      ["POST", `/keys/${target.id}/revoke`],
      ["POST", `/keys/${target.id}/rotate`],
      ["POST", `/keys/${viewer.id}/extend`],
      ["POST", "/machines/attic/models/pull"],
    ] as const) {
      const told = await viewer.ask(method, path, { name: "a" });
      expect(told, path).toMatchObject({ status: 403, json: { error: { code: "insufficient_permissions" } } });
    }
    expect(await api.keys.log({ entriesMax: 100 })).toEqual(entries);
  });
});

test("the command line revokes an admin key with those that it issued, and says which keys stay", async () => {
  const { keys, json, issue, inStore, clock } = await commandLine();
  const root = await issue("--admin");
  const [second, model] = await inStore(async ({ keys: store, peppers }) => {
    const found = await store.find(keyId.parse(root.id));
    if (found.kind !== "record") throw new Error("the admin key is not there");
    const means = { keys: store, peppers, clock, actor: { by: "test" }, admin: found.record };
    const terms = { scopes: ["*"], ttlMs: dayMs };
    return [
      (await issueKey({ ...terms, name: "second", kind: "admin" }, means)).record.id,
      (await issueKey({ ...terms, name: "alice's laptop" }, means)).record.id,
    ];
  });
  expect((await keys("show", String(second))).out).toMatch(new RegExp(`^issued by +admin ${root.id}`, "m"));
  const { out } = await keys("revoke", root.id);
  expect(out).toContain(`${root.id} (alice) is revoked\n`);
  expect(out).toContain(`${second} (second), which it issued, is revoked with it\n`);
  expect(out).toContain(`${model} (alice's laptop), which it issued, stays: --with-issued revokes it\n`);
  expect(await json("revoke", root.id, "--with-issued")).toEqual({
    id: root.id,
    outcome: "already_revoked",
    with: [model],
  });
});

test("the command line issues a viewer key, which no other option can make one for models", async () => {
  const { keys, issue } = await commandLine();
  const { id, key } = await issue("--viewer");
  expect(key).toMatch(/^trunkline_viewer_/);
  expect((await keys("show", id)).out).toMatch(/^kind +viewer: only reads/m);
  await expect(keys("issue", "--name", "a", "--viewer", "--scopes", "a")).rejects.toThrow("cannot be used with");
  await expect(keys("issue", "--name", "a", "--viewer", "--admin")).rejects.toThrow("cannot be used with");
});
