import { afterAll, beforeAll, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";

let up: UpProcess;
beforeAll(async () => void (up = await startUp()));
afterAll(() => up[Symbol.asyncDispose]());

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

function send({ method = "POST", path = "/chat/completions", headers = {}, body }: Sent): Promise<Response> {
  const { baseUrl, key } = up.endpoint;
  const own = { authorization: `Bearer ${key}`, "content-type": json };
  const given = Object.entries({ ...own, ...headers }).filter(([, value]) => value !== "");
  return fetch(`${baseUrl}${path}`, { method, headers: given, ...(body === undefined ? {} : { body }) });
}

const noKey = { authorization: "" };
const wrongKey = { authorization: `Bearer trunkline_${"0".repeat(12)}_${"0".repeat(38)}` };
const good = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "Hello" }] });
const unknownModel = good.replace("scripted", "absent");
const badShape = JSON.stringify({ model: "absent", messages: 7 });

const json = "application/json";
const wrongType = "unsupported_media_type";

/** What is sent, in the order in which it is checked: whatever else is wrong with a request comes after. */
const table: [string, Sent, number, string | null][] = [
  ["an unknown URL, without a key", { path: "/nothing", headers: noKey, body: "{" }, 404, "unknown_url"],
  ["a wrong method, without a key", { method: "DELETE", headers: noKey }, 405, "method_not_allowed"],
  ["a wrong method for the list", { method: "POST", path: "/models", body: good }, 405, "method_not_allowed"],
  ["no key, and a broken body", { headers: noKey, body: "{" }, 401, "key_invalid"],
  ["no key, for the list", { method: "GET", path: "/models", headers: noKey }, 401, "key_invalid"],
  ["a wrong key, and a large body", { headers: wrongKey, body: "x".repeat(200_000) }, 401, "key_invalid"],
  ["a key in the wrong scheme", { headers: { authorization: "Basic dXNlcjpwYXNz" }, body: good }, 401, "key_invalid"],
  ["a key that is no key", { headers: { authorization: "Bearer sk-1234" }, body: good }, 401, "key_invalid"],
  ["no content type", { headers: { "content-type": "" }, body: Buffer.from(good) }, 415, wrongType],
  ["a wrong content type", { headers: { "content-type": "text/plain" }, body: "{" }, 415, wrongType],
  ["another alphabet", { headers: { "content-type": `${json}; charset=latin1` }, body: good }, 415, wrongType],
  ["a body that is packed", { headers: { "content-encoding": "gzip" }, body: good }, 415, wrongType],
  ["no body", {}, 400, null],
  ["no body and no content type", { headers: { "content-type": "" } }, 400, null],
  ["a method that is seldom seen, without a key", { method: "QUERY", headers: noKey }, 405, "method_not_allowed"],
  ["broken JSON", { body: good.slice(0, -2) }, 400, null],
  ["bytes that are not text", { body: Buffer.from([0x7b, 0xff, 0x7d]) }, 400, null],
  ["a list for a body", { body: "[]" }, 400, "invalid_type"],
  ["a wrong shape, and an unknown model", { body: badShape }, 400, "invalid_type"],
  ["an unknown model, and a limit", { body: unknownModel.replace("}]", '}],"n":0') }, 400, "integer_below_min_value"],
  ["an unknown model", { body: unknownModel }, 404, "model_not_found"],
  ["an unknown model by its id", { method: "GET", path: "/models/absent" }, 404, "model_not_found"],
];

test.each(table)("%s has one error", async (_what, sent, status, code) => {
  const response = await send(sent);
  const error = await errorOf(response);
  expect([response.status, error.code, error.type]).toEqual([status, code, "invalid_request_error"]);
  expect(response.headers.get("x-request-id")).toMatch(/^req_\w{10,}$/);
  expect(response.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
  const allowed = sent.path === "/models" ? "GET, HEAD" : "POST";
  expect(response.headers.get("allow")).toBe(status === 405 ? allowed : null);
  expect(error.message).not.toContain("000000000000");
});

test.each([
  ["scripted:plain", "scripted:plain"],
  ["scripted%3Aplain", "scripted:plain"],
])("a model by its id is found as %s", async (written, id) => {
  const response = await send({ method: "GET", path: `/models/${written}` });
  expect(await response.json()).toMatchObject({ id, object: "model" });
});

test.each([
  ["/v1", "/chat/completions", "/v1/chat/completions"],
  ["", "/v1/v1/chat/completions", "/v1/chat/completions"],
  ["", "/v1//chat/completions", "/v1/chat/completions"],
])("a base URL that is nearly right is told what was meant: without %s, %s", async (_, path, meant) => {
  const { origin } = new URL(up.endpoint.baseUrl);
  const response = await fetch(`${origin}${path}`, { method: "POST", body: good });
  const { code, message } = await errorOf(response);
  expect([response.status, code]).toEqual([404, "unknown_url"]);
  expect(message).toBe(`No endpoint at POST ${path}. Did you mean ${meant}?`);
});

test.each([
  [
    "/v1/responses/resp_1/cancel",
    "No response runs in the background here, so that none is cancelled, and none is compacted. The endpoints are listed at /docs.",
  ],
  ["/v1/fine_tuning/jobs", "The endpoints are listed at /docs."],
])("a client that wants %s is told where to look", async (path, hint) => {
  const { origin } = new URL(up.endpoint.baseUrl);
  const { message } = await errorOf(await fetch(`${origin}${path}`, { method: "POST", body: good }));
  expect(message).toBe(`No endpoint at POST ${path}. ${hint}`);
});
