import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { Fault } from "#shared/fault/fault.ts";
import { backUp } from "../../services/gateway/backup.ts";
import { type Endpoint, refusalOf } from "../harness/endpoint.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Redis } from "ioredis";
import { dumpOf, redisUrl } from "../harness/redis-server.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

type Content = AnswerTo<"GET /requests/{id}/content">;

const env = { TRUNKLINE_CAPTURE: "on" };
const stateDir = folderOfTests();
let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess({ stateDir, logLevel: "trace", env })));
afterAll(() => gateway?.[Symbol.asyncDispose]());

const actor = { by: "the test" };
const captured = (at = gateway) => at.issue({ capture: "7d" });
const adminAt = async (at = gateway, kind: "admin" | "viewer" = "admin"): Promise<Endpoint> =>
  (await at.issue({ kind })).endpoint.at(`${at.operationsUrl}/admin/v1`);
const idOf = (response: Response): string => response.headers.get("x-request-id") ?? "";
const says = (script: string, fields: object = {}) => ({
  model: "scripted",
  messages: [{ role: "user", content: `/script ${script}\ncanary-prompt` }],
  ...fields,
});

/** Reads the content of a request once it is kept. */
async function contentOf(id: string, at = gateway): Promise<Content> {
  const admin = await adminAt(at);
  const read = async () => {
    const response = await admin.get(`/requests/${id}/content`);
    return response.status === 200 && ((await response.json()) as Content);
  };
  return until(read, { what: `the content of ${id}` });
}

const answerOf = ({ answer }: Content) => answer.map(({ kind, text }) => [kind, text]);

test.each([
  ["/chat/completions", says("tokens=2 nonce=canary"), [["text", "canary-0 canary-1 "]]],
  ["/chat/completions", says("tokens=2 nonce=canary", { stream: true }), [["text", "canary-0 canary-1 "]]],
  [
    "/completions",
    { model: "scripted", prompt: "/script tokens=1 nonce=canary\ncanary-prompt" },
    [["text", "canary-0 "]],
  ],
  ["/responses", { model: "scripted", input: "/script tokens=1 nonce=canary\ncanary-prompt" }, [["text", "canary-0 "]]],
  ["/messages", says("tokens=1 nonce=canary", { max_tokens: 9, stream: true }), [["text", "canary-0 "]]],
  ["/../api/chat", says("tokens=1 nonce=canary"), [["text", "canary-0 "]]],
  ["/messages/count_tokens", says("tokens=1"), []],
])("the content of a request to %s is its prompt and its answer, and its key is told", async (path, body, answer) => {
  const { endpoint, record } = await captured();
  const response = await endpoint.post(path, body);
  expect([response.status, response.headers.get("x-trunkline-captured")]).toEqual([200, "7d"]);
  await response.text();
  const content = await contentOf(idOf(response));
  expect(content).toMatchObject({ id: idOf(response), key: record.id, cut: false });
  expect(JSON.stringify(content.prompt)).toContain("canary-prompt");
  expect(answerOf(content)).toEqual(answer);
});

test("the content of a request has reasoning, tool calls and the types of files, and no other key's request has any", async () => {
  const { endpoint } = await captured();
  const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
  const called = await endpoint.post(
    "/chat/completions",
    says('think=1 tokens=1 nonce=canary tool=look args={"at":1}', { tools }),
  );
  expect(answerOf(await contentOf(idOf(called)))).toEqual([
    ["reasoning", "think-0 "],
    ["text", "canary-0 "],
    ["tool_call", 'look {"at":1}'],
  ]);
  const url = `data:image/png;base64,${"A".repeat(2_000_000)}`;
  const content = [
    { type: "image_url", image_url: { url } },
    { type: "text", text: 'data:image/png;base64,A "data:image/png;base64,A"' },
  ];
  const shown = await endpoint.post("/chat/completions", {
    model: "scripted:vision",
    messages: [{ role: "user", content }],
  });
  expect(await contentOf(idOf(shown))).toMatchObject({
    cut: false,
    prompt: { messages: [{ content: [{ image_url: { url: "image/png, 2000022 characters" } }, content[1]] }] },
  });
  const plain = await (await gateway.issue()).endpoint.post("/chat/completions", says("tokens=1"));
  expect([plain.status, plain.headers.get("x-trunkline-captured")]).toEqual([200, null]);
  const admin = await adminAt();
  expect(await refusalOf(admin.get(`/requests/${idOf(plain)}/content`))).toMatchObject({ status: 404, param: "id" });
});

test("the content of a request has what came before its client left or its machine failed, and all of a resumed answer", async () => {
  const { endpoint } = await captured();
  const resumable = { "x-trunkline-resumable": "1" };
  const begun = await endpoint.post("/chat/completions", says("tokens=3 nonce=canary", { stream: true }), {
    headers: resumable,
  });
  const [, event = ""] = /^id: (\S+)/m.exec(await begun.text()) ?? [];
  const resumed = await endpoint.post("/chat/completions", says("tokens=3 nonce=canary", { stream: true }), {
    headers: { ...resumable, "last-event-id": event },
  });
  expect([resumed.status, (await resumed.text()).includes("[DONE]")]).toEqual([200, true]);
  expect(answerOf(await contentOf(idOf(resumed)))).toEqual([["text", "canary-0 canary-1 canary-2 "]]);
  const leaving = new AbortController();
  const left = await endpoint.stream(says("tokens=9 nonce=canary stall_at=2"), leaving.signal);
  await until(() => left.text.includes("canary-1"), { what: "the second token" });
  leaving.abort();
  expect(answerOf(await contentOf(idOf(left.response)))).toEqual([["text", "canary-0 canary-1 "]]);
  const failed = await endpoint.stream(says("tokens=9 nonce=canary fail_at=1"));
  await failed.over;
  expect(answerOf(await contentOf(idOf(failed.response)))).toEqual([["text", "canary-0 "]]);
});

test("a captured key is told on every answer, before a prompt and on errors, and only where content is kept", async () => {
  const { endpoint, record } = await captured();
  const told = async (response: Promise<Response>) => {
    const { status, headers } = await response;
    return [status, headers.get("x-trunkline-captured")];
  };
  expect(await told(endpoint.get("/models"))).toEqual([200, "7d"]);
  expect(await told(endpoint.get("/responses/none"))).toEqual([404, "7d"]);
  expect(await told(endpoint.post("/chat/completions", says("tokens=1", { model: "absent" })))).toEqual([404, "7d"]);
  expect(await told(endpoint.post("/embeddings", { model: 7 }))).toEqual([400, "7d"]);
  expect(await told(endpoint.withKey("trunkline_none").get("/models"))).toEqual([401, null]);
  await changeKey(record.id, { action: "changed", terms: { capture: null } }, { ...gateway.store, actor });
  await vi.waitFor(async () => expect(await told(endpoint.get("/models"))).toEqual([200, null]));
  await using off = await startGatewayInProcess();
  const unkept = await captured(off);
  const answer = await unkept.endpoint.post("/chat/completions", says("tokens=1"));
  expect(await told(Promise.resolve(answer))).toEqual([200, null]);
  expect(await off.store.captures.holders()).toEqual([]);
});

test("the content of a request is read and removed by admins alone, and the trail has each look before it is shown", async () => {
  const { endpoint, record } = await captured();
  const id = idOf(await endpoint.post("/chat/completions", says("tokens=1 nonce=canary")));
  await contentOf(id);
  const [admin, viewer] = [await adminAt(), await adminAt(gateway, "viewer")];
  const path = `/requests/${id}/content`;
  for (const method of ["GET", "DELETE"])
    expect(await refusalOf(viewer.send(method, path))).toMatchObject({ status: 403, code: "insufficient_permissions" });
  expect((await endpoint.send("GET", `${gateway.operationsUrl}/admin/v1${path}`)).status).toBe(403);
  const noting = vi.spyOn(gateway.store.sessions, "noteSignIn");
  noting.mockRejectedValueOnce(new Fault("backend_unavailable", { message: "away" }));
  const unnoted = await admin.get(path);
  expect([unnoted.status, await unnoted.text()]).toEqual([503, expect.not.stringContaining("canary")]);
  noting.mockRestore();

  const settings = { TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_KEY_PEPPER: testPepper };
  const shown = await trunklineHere(["requests", "show", id, "--content"], settings);
  expect(shown.out).toMatch(
    /user\n {2}\/script tokens=1 nonce=canary\n {2}canary-prompt\n\nanswer: text\n {2}canary-0 \n/,
  );
  const trail = async () => {
    const { data } = (await (await admin.get(`/log?key=${record.id}`)).json()) as AnswerTo<"GET /log">;
    return data.slice(1).map(({ action, by, name, detail }) => [action, by.split(" ")[0], name, detail?.["request"]]);
  };
  const [byAdmin, byCli] = ["admin", "cli"].map((by) => ["content_read", by, "test", id]);
  expect(await trail()).toEqual([byAdmin, byCli]);
  expect((await trunklineHere(["requests", "forget", id], settings)).exitCode).toBe(0);
  expect(await trail()).toEqual([byAdmin, byCli, ["content_forgotten", "cli", "test", id]]);
  expect((await admin.get(path)).status).toBe(404);
  expect((await trunklineHere(["requests", "show", id, "--content"], settings)).err).toContain(
    `No content of the request ${id}`,
  );
});

test("the content of a request is cut at 1 MiB, and says so", async () => {
  const { endpoint } = await captured();
  const messages = [{ role: "user", content: `/script tokens=30000 nonce=canary\n${"word ".repeat(400_000)}` }];
  const response = await endpoint.post("/chat/completions", { model: "scripted", messages });
  expect(response.status).toBe(200);
  const { prompt, answer, cut } = await contentOf(idOf(response));
  expect([cut, String(prompt).length, answer[0]?.text.length]).toEqual([true, 0.75 * 2 ** 20, 0.25 * 2 ** 20]);
  expect((await MetricsText.scrape(gateway.operationsUrl)).value("trunkline_captures_total", { outcome: "cut" })).toBe(
    1,
  );
});

test("the content of a request is in no file, log or backup as text, and gone with its key", async () => {
  const { endpoint, record } = await captured();
  const id = idOf(await endpoint.post("/chat/completions", says("tokens=1 nonce=canary")));
  await contentOf(id);
  for (const file of await readdir(stateDir))
    expect((await readFile(join(stateDir, file))).includes("canary")).toBe(false);
  expect(gateway.logged.join("")).not.toContain("canary");
  const file = join(stateDir, "site.backup");
  await backUp({ ...gateway.store, actor }, { file, secrets: {} });
  expect(gunzipSync(await readFile(file)).includes(`capture:${record.id}`)).toBe(false);
  await changeKey(record.id, { action: "revoked" }, { ...gateway.store, actor });
  expect(await gateway.store.captures.find(record.id, [id])).toEqual([undefined]);
});

test("the content of a request at one gateway on Redis is read at another, under the next pepper too, and is nowhere in Redis as text", async () => {
  await using redis = await redisUrl();
  await using here = await startGatewayInProcess({ redisUrl: redis.url, env });
  const { endpoint, record } = await captured(here);
  const next = "another pepper that is long enough";
  const pepper = { TRUNKLINE_KEY_PEPPER: next, TRUNKLINE_KEY_PEPPER_ALSO: testPepper };
  await using there = await startGatewayInProcess({ redisUrl: redis.url, env: { ...env, ...pepper } });
  const id = idOf(await endpoint.post("/chat/completions", says("tokens=1 nonce=canary")));
  expect(answerOf(await contentOf(id, there))).toEqual([["text", "canary-0 "]]);
  const client = new Redis(redis.url);
  const dump = await dumpOf(client);
  expect([...dump].flat().join("\n")).not.toContain("canary");
  const keptMs = await client.pttl([...dump.keys()].find((name) => name.endsWith(id)) ?? "");
  client.disconnect();
  expect(Math.round(keptMs / 3_600_000)).toBe(7 * 24);
  await changeKey(record.id, { action: "revoked" }, { ...there.store, actor });
  expect(await here.store.captures.holders()).toEqual([]);
});
