import { expect, test } from "vitest";
import type { KeyToken } from "#shared/keys/key-token.ts";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import { sqlitePlace } from "../contract/key-store-place.ts";
import { AdminOnStore, peppers, type Method } from "../unit/gateway/operations/admin-on-a-store.ts";

function tokenOf(text: unknown): KeyToken {
  const parsed = parseKeyToken(String(text));
  if (parsed.outcome !== "parsed") throw new Error(parsed.outcome);
  return parsed.token;
}

test("a secret leaves in one answer only, the one that made it, and no digest does", async () => {
  const api = new AdminOnStore(await (await sqlitePlace()).open());
  const admin = (await api.issue({ kind: "admin" })).token;
  const ask = (method: Method, path: string, body?: unknown) => api.ask(method, path, { key: admin.reveal(), body });

  const issued = await ask("POST", "/keys", { name: "bob" });
  const at = `/keys/${String(issued.json["id"])}`;
  const rotated = await ask("POST", `${at}/rotate`, { grace: "1h" });
  await ask("PATCH", at, { name: "robert", rpm: 5 });
  await ask("PATCH", at, { name: 7 });
  for (const action of ["extend", "disable", "enable", "enable", "revoke", "rotate"])
    await ask("POST", `${at}/${action}`);
  for (const path of [at, "/keys", "/log", "/usage", "/openapi.json", "/keys?limit=x"]) await ask("GET", path);
  await api.ask("GET", "/keys", { key: admin.reveal().slice(0, -1) });

  const tokens = [admin, tokenOf(issued.json["key"]), tokenOf(rotated.json["key"])];
  const timesSent = tokens.map((token) => api.sent.filter((text) => text.includes(token.reveal().slice(-38))).length);
  expect(timesSent).toEqual([0, 1, 1]);
  const all = [...api.sent, ...api.logged].join("\n");
  for (const token of tokens) expect(all).not.toContain(token.digest(peppers.current));
  expect(api.logged.length).toBeGreaterThan(0);
  for (const token of tokens) expect(api.logged.join("\n")).not.toContain(token.reveal().slice(-38));
});

test("no answer is kept by anybody on its way, whatever became of the request", async () => {
  const api = new AdminOnStore(await (await sqlitePlace()).open());
  const key = (await api.issue({ kind: "admin" })).token.reveal();
  const answers = [
    await api.ask("POST", "/keys", { key, body: { name: "bob" } }),
    await api.ask("POST", "/keys", { key, body: {} }),
    await api.ask("GET", "/keys", { key }),
    await api.ask("GET", "/keys"),
    await api.ask("PUT", "/keys"),
    await api.ask("GET", "/openapi.json"),
  ];
  expect(answers.map(({ status }) => status)).toEqual([201, 400, 200, 401, 405, 200]);
  for (const { headers } of answers) expect(headers["cache-control"]).toBe("no-store");
});
