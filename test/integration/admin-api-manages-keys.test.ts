import { checkKey } from "#shared/records/judge-key.ts";
import { expect, test } from "vitest";
import { noUsage } from "#shared/usage/usage.ts";
import { keyId, parseKeyToken, type KeyId } from "#shared/keys/key-token.ts";
import { sqlitePlace } from "../contract/key-store-place.ts";
import { AdminOnStore, peppers, type Method, type Told } from "../unit/gateway/operations/admin-on-a-store.ts";
import { onEachStore } from "./admin-api-on-each-store.ts";

const dayMs = 86_400_000;
const anId = "0aB1cD2eF3gH";

onEachStore((managed) => {
  async function outcomeOf(api: AdminOnStore, text: unknown): Promise<string> {
    const parsed = parseKeyToken(String(text));
    if (parsed.outcome !== "parsed") return parsed.outcome;
    return (await checkKey({ token: parsed.token, keys: api.keys, peppers, nowMs: api.clock.wall() })).outcome;
  }
  const idOf = ({ json }: Told): KeyId => keyId.parse(json["id"]);

  test("a key and an entry of a newer version are counted as unread, and all others are listed", async () => {
    const { api, admin, ask } = await managed();
    const newer = { ...admin.record, id: keyId.parse("zzzzzzzzzzzz"), onlyOnSundays: true };
    const entry = { at: 1, by: "a newer version", action: "issued", key: newer.id, name: "root" } as const;
    await api.keys.issue(newer, Object.assign({ why: "it is newer" }, entry));
    expect((await ask("GET", "/keys")).json).toMatchObject({ data: [{ id: admin.record.id }], unread: 1 });
    expect((await ask("GET", "/log")).json).toMatchObject({ data: [{ action: "issued" }], unread: 1 });
    expect(await ask("GET", `/keys/${newer.id}`)).toMatchObject({ status: 503 });
  });

  test("a key is issued, shown, rotated, extended, disabled, enabled and revoked, and the trail says who did it", async () => {
    const { api, admin, ask } = await managed();
    const start = api.clock.wall();
    const iso = (afterMs: number): string => new Date(start + afterMs).toISOString();
    const terms = { scopes: ["llama3"], machines: ["attic"], rpm: 60, tpm: null, concurrency: 2 };

    const issued = await ask("POST", "/keys", { name: "bob", ttl: "10d", ...terms });
    expect(issued.status).toBe(201);
    const { key: first, ...shown } = issued.json;
    expect(shown).toMatchObject({ kind: "model", name: "bob", state: "valid", expires_at: iso(10 * dayMs), ...terms });
    expect(await outcomeOf(api, first)).toBe("valid");
    const at = `/keys/${idOf(issued)}`;
    expect((await ask("GET", at)).json).toEqual(shown);

    const changed = await ask("PATCH", at, { name: "robert", machines: null, rpm: null, tpm: 5_000 });
    const after = { ...shown, name: "robert", machines: null, rpm: null, tpm: 5_000 };
    expect(changed.json).toEqual({ ...after, outcome: "changed" });

    const rotated = await ask("POST", `${at}/rotate`, { grace: "1h" });
    const { key: second, ...afterRotation } = rotated.json;
    expect(afterRotation).toEqual({ ...after, old_secrets_valid_until: [iso(3_600_000)] });
    expect(await outcomeOf(api, first)).toBe("valid");
    expect(await outcomeOf(api, second)).toBe("valid");
    api.clock.advance(3_600_000);
    expect(await outcomeOf(api, first)).toBe("replaced");

    const extended = await ask("POST", `${at}/extend`, { ttl: "30d" });
    expect(extended.json).toMatchObject({ expires_at: iso(3_600_000 + 30 * dayMs), old_secrets_valid_until: [] });

    const disabled = await ask("POST", `${at}/disable`);
    expect(disabled.json).toMatchObject({ state: "disabled", disabled_at: iso(3_600_000) });
    expect(await outcomeOf(api, second)).toBe("disabled");
    expect((await ask("POST", `${at}/enable`)).json).toMatchObject({ state: "valid", disabled_at: null });
    expect(await outcomeOf(api, second)).toBe("valid");

    expect((await ask("POST", `${at}/revoke`)).json).toEqual({
      id: idOf(issued),
      state: "revoked",
      outcome: "changed",
    });
    expect(await outcomeOf(api, second)).toBe("invalid");
    expect((await ask("GET", at)).json).toMatchObject({ state: "revoked", revoked_at: iso(3_600_000) });

    const by = `admin ${admin.record.id}`;
    const trail = await ask("GET", `/log?key=${idOf(issued)}`);
    const actions = ["issued", "changed", "rotated", "extended", "disabled", "enabled", "revoked"];
    expect(trail.json["data"]).toMatchObject(
      actions.map((action) => ({ action, by, key: idOf(issued), request: expect.stringMatching(/^req_/) })),
    );
    expect(trail.json).toMatchObject({ data: [{ at: iso(0), name: "bob" }, { name: "robert" }, {}, {}, {}, {}, {}] });
  });

  test("a new key has the defaults for missing fields of the command line", async () => {
    const { api, ask } = await managed();
    const { json } = await ask("POST", "/keys", { name: "bob" });
    const expiresAt = new Date(api.clock.wall() + 90 * dayMs).toISOString();
    const none = { machines: null, rpm: null, tpm: null, concurrency: null, budget: null };
    expect(json).toMatchObject({ kind: "model", scopes: ["*"], expires_at: expiresAt, ...none });
    const rotated = await ask("POST", `/keys/${String(json["id"])}/rotate`);
    expect(rotated.json["old_secrets_valid_until"]).toEqual([new Date(api.clock.wall() + dayMs).toISOString()]);
  });

  test("a repeated change is made once", async () => {
    const { api, ask } = await managed();
    const { record } = await api.issue();
    const at = `/keys/${record.id}`;
    const twice = async (method: Method, path: string, body?: unknown): Promise<void> => {
      const [one, other] = [await ask(method, path, body), await ask(method, path, body)];
      expect(other).toMatchObject({ status: 200, json: { ...one.json, outcome: "unchanged" } });
    };
    await twice("PATCH", at, { rpm: 5 });
    await twice("POST", `${at}/disable`);
    await twice("POST", `${at}/enable`);
    await twice("DELETE", at);
    const trail = await api.keys.log({ entriesMax: 100, keys: [record.id] });
    expect(trail.map(({ action }) => action)).toEqual(["issued", "changed", "disabled", "enabled", "revoked"]);
  });

  test("an admin key that rotates itself goes on as one with its new secret, and with the old one for its grace", async () => {
    const { api, admin, ask } = await managed();
    const rotated = await ask("POST", `/keys/${admin.record.id}/rotate`, { grace: "1h" });
    const key = String(rotated.json["key"]);
    expect(key).toMatch(/^trunkline_admin_/);
    api.clock.advance(3_600_000);
    expect((await api.ask("GET", "/keys", { key })).status).toBe(200);
    expect(await ask("GET", "/keys")).toMatchObject({ status: 401, json: { error: { code: "key_expired" } } });
  });

  test("a key that is not there or cannot be changed is told so, and nothing is noted", async () => {
    const { api, admin, ask } = await managed();
    const revoked = (await api.issue()).record.id;
    await ask("DELETE", `/keys/${revoked}`);
    const entries = (await api.keys.log({ entriesMax: 100 })).length;
    const refused = { status: 409, json: { error: { code: "key_change_refused", param: null } } };
    const missing = { status: 404, json: { error: { code: "key_not_found", param: "id" } } };
    for (const [method, action] of [
      ["PATCH", ""],
      ["POST", "/rotate"],
      ["POST", "/extend"],
      ["POST", "/disable"],
      ["POST", "/enable"],
    ] as const) {
      expect(await ask(method, `/keys/${revoked}${action}`)).toMatchObject(refused);
      expect(await ask(method, `/keys/${anId}${action}`)).toMatchObject(missing);
    }
    for (const method of ["GET", "DELETE"] as const) expect(await ask(method, `/keys/${anId}`)).toMatchObject(missing);
    expect(await ask("POST", `/keys/${anId}/revoke`)).toMatchObject(missing);
    expect(await ask("POST", `/keys/${admin.record.id}/extend`, { ttl: "91d" })).toMatchObject(refused);
    expect((await ask("POST", `/keys/${revoked}/enable`)).headers["x-should-retry"]).toBe("false");
    expect(await api.keys.log({ entriesMax: 100 })).toHaveLength(entries);
  });

  test("a list comes in pages that hold every key once, also those that were made at the same moment", async () => {
    const { api, admin, ask } = await managed();
    const issued = await Promise.all(Array.from({ length: 9 }, () => api.issue()));
    await ask("POST", `/keys/${issued[0]?.record.id}/disable`);
    const pages: unknown[][] = [];
    let path = "/keys?limit=4";
    for (;;) {
      const { data, has_more: more } = (await ask("GET", path)).json as { data: { id: string }[]; has_more: boolean };
      pages.push(data.map(({ id }) => id));
      if (!more) break;
      path = `/keys?limit=4&after=${data.at(-1)?.id}`;
    }
    expect(pages.map((page) => page.length)).toEqual([4, 4, 2]);
    const all = [admin, ...issued].map(({ record }) => record.id);
    expect(new Set(pages.flat())).toEqual(new Set(all));
    const disabled = (await ask("GET", "/keys?state=disabled")).json;
    expect(disabled).toMatchObject({ data: [{ id: issued[0]?.record.id, state: "disabled" }], has_more: false });
  });

  test("the log gives the latest entries, as many as are asked for", async () => {
    const { api, ask } = await managed();
    const ids = [];
    for (const name of ["a", "b", "c"]) ids.push((await api.issue({ name })).record.id);
    const { data } = (await ask("GET", "/log?limit=2")).json;
    expect(data).toMatchObject([{ name: "b" }, { name: "c", by: "the operator", request: null }]);
    expect((await ask("GET", `/log?limit=2&key=${ids[0]}`)).json["data"]).toMatchObject([{ name: "a" }]);
    expect((await ask("GET", "/log?key=a")).json["data"]).toMatchObject([{ name: "a", key: ids[0] }]);
  });
});

test("usage is told of the keys of one team, with what counts towards the team's budgets", async () => {
  const api = new AdminOnStore(await (await sqlitePlace()).open());
  const key = (await api.issue({ kind: "admin" })).token.reveal();
  api.clock.setWall(Date.UTC(2026, 1, 10, 12));
  const row = { ...noUsage, keyId: anId, team: "research", promptTokens: 10, completionTokens: 20, cost: 5 };
  api.usage.push({ ...row, day: "2026-02-01" }, { ...row, day: "2026-02-10" });
  api.usage.push({ ...row, day: "2026-02-10", team: null, cost: 700 });
  const { data } = (await api.ask("GET", "/usage?team=research", { key })).json;
  expect(data).toMatchObject([{ cost: 5 }, { cost: 5 }]);
  expect((await api.ask("GET", "/usage/keys?by=team", { key })).json["data"]).toEqual([
    {
      key: "research",
      last_day: "2026-02-10",
      tokens_of_day: 30,
      tokens_of_month: 60,
      cost_of_day: 5,
      cost_of_month: 10,
    },
  ]);
  expect(await api.ask("GET", "/usage?team=research&by=machine", { key })).toMatchObject({
    status: 400,
    json: { error: { param: "by", message: expect.stringContaining("leave out 'team'") } },
  });
});

test("usage is told by day, key and model, for the days and the key that are asked for", async () => {
  const api = new AdminOnStore(await (await sqlitePlace()).open());
  const key = (await api.issue({ kind: "admin" })).token.reveal();
  api.clock.setWall(Date.UTC(2026, 1, 10, 12));
  const counts = { requests: 3, failed: 1, promptTokens: 10, completionTokens: 20 };
  const row = {
    ...noUsage,
    day: "2026-02-01",
    keyId: anId,
    model: "llama3",
    ...counts,
    answered: 2,
    firstTokenMs: 9,
    durationMs: 99,
  };
  api.usage.push(row, { ...row, keyId: "ZZZZZZZZZZZZ", model: null });
  const parts = { team: null, person: null, kind: null, machine: null, user: null, user_name: null, cost: 0 };
  const shown = { day: "2026-02-01", key: anId, model: "llama3", ...parts, requests: 3, failed: 1, answered: 2 };
  const all = await api.ask("GET", "/usage?from=2026-02-01&to=2026-02-03", { key });
  expect(all.json["data"]).toEqual([
    { ...shown, prompt_tokens: 10, completion_tokens: 20, first_token_ms: 9, duration_ms: 99 },
    expect.objectContaining({ key: "ZZZZZZZZZZZZ", model: null }),
  ]);
  expect((await api.ask("GET", `/usage?key=${anId}`, { key })).json["data"]).toHaveLength(1);
  expect(await api.ask("GET", "/usage?key=nobody", { key })).toMatchObject({
    status: 404,
    json: { error: { code: "key_not_found", param: "key" } },
  });
  expect((await api.ask("GET", "/usage/keys", { key })).json["data"]).toEqual([
    { key: anId, last_day: "2026-02-01", tokens_of_day: 0, tokens_of_month: 30, cost_of_day: 0, cost_of_month: 0 },
    expect.objectContaining({ key: "ZZZZZZZZZZZZ" }),
  ]);
  expect(api.usageAsked).toEqual([
    { from: "2026-02-01", to: "2026-02-03" },
    { from: "2026-01-12", to: "2026-02-10" },
    { from: "2026-01-11", to: "2026-02-10" },
  ]);
});
