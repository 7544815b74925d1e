import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { errorOf, type Endpoint } from "../harness/endpoint.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

const model = "scripted:embed";
const missing = "missing_required_parameter";
const ask = { model, input: ["one two", "three"] };

describe("embeddings end in the same errors as chats, in the same order:", () => {
  let up: UpProcess;
  beforeAll(async () => {
    up = await startUp();
  });
  afterAll(() => up[Symbol.asyncDispose]());

  test.each<[string, (endpoint: Endpoint) => Promise<Response>, number, string]>([
    ["a wrong method", (endpoint) => endpoint.get("/embeddings"), 405, "method_not_allowed"],
    ["a wrong key, and a wrong shape", (endpoint) => endpoint.withKey("sk-1").embed({}), 401, "key_invalid"],
    ["a wrong shape, and an unknown model", (endpoint) => endpoint.embed({ model: "absent" }), 400, missing],
    ["an unknown model", (endpoint) => endpoint.embed({ ...ask, model: "absent" }), 404, "model_not_found"],
    ["a model that only chats", (endpoint) => endpoint.embed({ ...ask, model: "scripted" }), 400, "unsupported_value"],
  ])("%s", async (_, send, status, code) => {
    const response = await send(up.endpoint);
    expect(response.status).toBe(status);
    expect((await errorOf(response)).code).toBe(code);
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  });
});

describe("embeddings count in the limits and the usage of their key", () => {
  let folder: string;
  let gateway: GatewayInProcess;
  let operator: Operator;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-embeddings-"));
    gateway = await startGatewayInProcess({ stateDir: folder });
    operator = await Operator.on({ stateDir: folder });
  });
  afterAll(async () => {
    await operator[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  test("with the tokens that the machine told, and nothing for an answer", async () => {
    const { record, endpoint } = await gateway.issue();
    expect((await endpoint.embed(ask)).status).toBe(200);
    const counted = await until(() => operator.usageSum(record.id), { what: "the usage to be written" });
    expect(counted).toMatchObject({ model, requests: 1, failed: 0, promptTokens: 3, completionTokens: 0, answered: 0 });
  });

  test("by their request and by what they are expected to cost", async () => {
    const { endpoint } = await gateway.issue({ limits: { requestsPerMinute: 1 } });
    const first = await endpoint.embed(ask);
    expect([first.status, first.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "0"]);
    const second = await endpoint.embed(ask);
    expect([second.status, (await errorOf(second)).code]).toEqual([429, "rate_limit_exceeded"]);
    const narrow = await gateway.issue({ limits: { tokensPerMinute: 10 } });
    const large = await narrow.endpoint.embed({ model, input: Array(1_200).fill("four") });
    expect([large.status, (await errorOf(large)).code]).toEqual([429, "insufficient_quota"]);
    expect((await narrow.endpoint.embed({ model, input: Array(6).fill("four") })).status).toBe(200);
    const next = await narrow.endpoint.embed({ model, input: Array(6).fill("four") });
    expect([next.status, (await errorOf(next)).code]).toEqual([429, "rate_limit_exceeded"]);
  });
});

describe.skipIf(lentOnly("nats", "redis"))("embeddings on a machine of their own", () => {
  test("are closed at the runtime when their client leaves, and have their machine's absence told", async () => {
    const ollama = await FakeOllama.start({ models: [{ name: "nomic:latest", capabilities: ["embedding"] }] });
    onTestFinished(() => ollama.stop());
    const env = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url };
    await using fleet = await startFleet({ machines: { attic: { env } } });
    const { endpoint } = fleet;
    await until(async () => (await endpoint.models()).ids.includes("nomic"), { what: "the model to be listed" });
    expect((await endpoint.embed({ model: "nomic", input: "one" })).status).toBe(200);

    ollama.silent = true;
    const leaving = new AbortController();
    const answer = endpoint.embed({ model: "nomic", input: "two" }, leaving.signal).catch(() => "left");
    const request = await until(() => ollama.requestsTo("/api/embed")[1], { what: "the request at the runtime" });
    leaving.abort();
    expect(await answer).toBe("left");
    await until(() => request.closedEarly, { what: "the runtime's request to be closed", timeoutMs: 2_000 });

    await fleet.agent("attic").terminate();
    const absent = await endpoint.embed({ model: "nomic", input: "three" });
    expect([absent.status, (await errorOf(absent)).code]).toEqual([503, "agent_offline"]);
  });
});
