import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { manageLine, type OfferedModel, modelListing, shownModel } from "#shared/protocol/model.ts";
import type { Control } from "#shared/protocol/job.ts";
import { errorBody } from "../../services/gateway/operations/admin-api.ts";
import { errorOf, refusalOf } from "../harness/endpoint.ts";
import { HandMadeAgent, handMadeEnd, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { startGateway } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { jsonPayload } from "../harness/answer-payload.ts";

const offered: OfferedModel = {
  id: "llama3.2",
  object: "model",
  created: 1_767_225_600,
  owned_by: "library",
  capabilities: { completion: true, vision: false, embedding: false, tools: true, thinking: false },
  context_window: 4_096,
  size_mb: 2_019,
  runtime_profile: "apple-mlx",
  apple_mlx: true,
  runtime: "ollama",
  loaded: true,
  memory_mb: 3_200,
  load_ms: 4_200,
  digest: "ollama:d",
  continues: ["plain" as const],
};

let fleet: Fleet;
let adminKey: string;
let adminId: string;
beforeAll(async () => {
  fleet = await startFleet({ machines: { cellar: { models: ["scripted", "scripted:plain"] } } });
  await using operator = await Operator.on({ redisUrl: fleet.redis.url });
  const { token } = await operator.issue({ kind: "admin" });
  [adminKey, adminId] = [token.reveal(), token.id];
});
afterAll(() => fleet[Symbol.asyncDispose]());

const operationsUrl = (): string => `${fleet.gateway.operationsUrl}/admin/v1`;

interface Asking {
  readonly body?: object;
  readonly key?: string;
  readonly signal?: AbortSignal | undefined;
  readonly at?: string;
}

function ask(path: string, { body, key = adminKey, signal, at = operationsUrl() }: Asking = {}): Promise<Response> {
  return fetch(at + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
}

const strict = z.strictObject({
  ...modelListing.shape,
  data: z.array(z.strictObject(shownModel.shape)),
});

async function listing(query = ""): Promise<z.infer<typeof strict>> {
  const response = await ask(`/models${query}`);
  expect(response.status).toBe(200);
  return strict.parse(await response.json());
}

let machines = 0;

/** A machine that nobody knew before and that does with manage jobs what a test says; it is gone at the test's end. */
async function startMachine(onJob: (job: HandMadeJob) => void): Promise<{ machine: string; controls: Control[] }> {
  machines += 1;
  const machine = `attic-${machines}`;
  const controls: Control[] = [];
  const onControl = (control: Control): void => void controls.push(control);
  const agent = await HandMadeAgent.start({ natsUrl: fleet.nats.url, machine, model: offered, onJob, onControl });
  onTestFinished(() => agent[Symbol.asyncDispose]());
  await until(async () => (await stateOf(machine)) === "listed", { what: `the gateway to list ${machine}` });
  return { machine, controls };
}

async function stateOf(machine: string): Promise<string | undefined> {
  return (await listing()).machines.find((each) => each.machine === machine)?.state;
}

function manage(machine: string, action: string, signal?: AbortSignal): Promise<Response> {
  return ask(`/machines/${machine}/models/${action}`, { body: { model: "llama3.2" }, signal });
}

async function linesOf(response: Response): Promise<z.infer<typeof manageLine>[]> {
  const text = await response.text();
  expect(text).toMatch(/\n$/);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => manageLine.parse(JSON.parse(line)));
}

test("every machine's models are listed with what operators want to see, and clients are told none of that", async () => {
  const { machine } = await startMachine(() => undefined);
  const all = await listing();
  const data = all.data.filter((each) => [machine, "cellar"].includes(each.machine));
  expect(data.map((each) => [each.id, each.machine])).toEqual([
    ["llama3.2", machine],
    ["scripted", "cellar"],
    ["scripted:plain", "cellar"],
  ]);
  expect(data[0]).toEqual({
    id: "llama3.2",
    machine,
    runtime: "ollama",
    capabilities: offered.capabilities,
    context_window: 4_096,
    size_mb: 2_019,
    created: 1_767_225_600,
    runtime_profile: "apple-mlx",
    apple_mlx: true,
    loaded: true,
    loading: null,
    kept: false,
    memory_mb: 3_200,
    load_seconds: 4.2,
    digest: "ollama:d",
    continues: ["plain"],
  });
  expect(data[1]).toMatchObject({ apple_mlx: false, loaded: null });
  for (const each of [machine, "cellar"]) expect(all.machines).toContainEqual({ machine: each, state: "listed" });
  expect((await listing(`?machine=${machine}`)).data.map(({ id }) => id)).toEqual(["llama3.2"]);

  const clients = (await (await fleet.endpoint.get("/models")).json()) as { data: object[] };
  const told = new Set(["runtime", "loaded", "memory_mb", "load_ms", "digest", "continues"]);
  const forClients = Object.fromEntries(Object.entries(offered).filter(([field]) => !told.has(field)));
  expect(clients.data.find((each) => "id" in each && each.id === "llama3.2")).toEqual(forClients);
});

test("a machine that is away is named and not waited for, and to ask for it alone is 503", async () => {
  const agent = await fleet.startAgent("shed", { models: ["scripted:vision"] });
  await until(async () => (await stateOf("shed")) === "listed", { what: "shed to be listed" });
  await agent.freeze();
  await until(async () => (await stateOf("shed")) === "no_answer", { what: "shed not to answer" });
  expect((await listing()).data.map(({ id }) => id)).toContain("scripted");
  await agent.kill();
  await until(async () => (await stateOf("shed")) === "offline", { what: "shed to be away" });
  for (const response of [await ask("/models?machine=shed"), await manage("shed", "pull")]) {
    expect(await refusalOf(response)).toMatchObject({ status: 503, code: "agent_offline", param: "machine" });
  }
});

test("a pull is a job that the machine tells of line by line, and the last line says that it is done", async () => {
  const seen: { kind: string; model: string | undefined; body: unknown; remainingMs: number }[] = [];
  const { machine } = await startMachine(({ head, body, say }) => {
    const { kind, model, remainingMs } = head;
    seen.push({ kind, model, remainingMs, body: JSON.parse(Buffer.from(body).toString()) });
    const all = jsonPayload({ status: "pulling manifest" }, { status: "pulling ä", completedBytes: 7, totalBytes: 9 });
    say("data", all.subarray(0, 50), 1);
    say("data", all.subarray(50), 2);
    say("end", handMadeEnd, 3);
  });
  const response = await ask(`/machines/${machine}/models/pull`, { body: { model: "hf.co/org/Näme:q4" } });
  expect([response.status, response.headers.get("content-type"), response.headers.get("cache-control")]).toEqual([
    200,
    "application/x-ndjson",
    "no-store",
  ]);
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  expect(await linesOf(response)).toEqual([
    { status: "pulling manifest", completed_bytes: null, total_bytes: null },
    { status: "pulling ä", completed_bytes: 7, total_bytes: 9 },
    { done: true },
  ]);
  const job = { kind: "manage", model: "hf.co/org/Näme:q4", body: { action: "pull" } };
  expect(seen).toEqual([{ ...job, remainingMs: 86_400_000 }]);
});

test.each(["remove", "load", "unload"])(
  "%s is asked of the machine by its name, and may be done without a word",
  async (action) => {
    const bodies: string[] = [];
    const { machine } = await startMachine(({ body, say }) => {
      bodies.push(Buffer.from(body).toString());
      say("end", handMadeEnd, 1);
    });
    const response = await manage(machine, action);
    expect([response.status, await linesOf(response)]).toEqual([200, [{ done: true }]]);
    expect(bodies).toEqual([JSON.stringify({ action })]);
  },
);

test.each([
  ["insufficient_permissions", 403],
  ["unsupported_value", 400],
  ["model_not_found", 404],
  ["runtime_offline", 503],
])("a machine that refuses with %s is told with its true status and its own words", async (code, status) => {
  const message = "TRUNKLINE_MANAGE does not allow it.";
  const { machine } = await startMachine(({ say }) => say("fault", { code, message }, 1));
  const response = await manage(machine, "pull");
  expect([response.status, await errorOf(response)]).toMatchObject([status, { code, message }]);
});

test("work that fails after its first line says so in its last, and never that it is done", async () => {
  const { machine } = await startMachine(({ say }) => {
    say("data", jsonPayload({ status: "pulling manifest" }), 1);
    say("fault", { code: "upstream_error", message: "No room is left." }, 2);
  });
  const response = await manage(machine, "pull");
  const [first, last, ...more] = (await response.text()).trimEnd().split("\n");
  expect([response.status, first, more]).toEqual([200, expect.stringContaining("pulling manifest"), []]);
  expect(errorBody.parse(JSON.parse(last ?? "")).error).toMatchObject({
    code: "upstream_error",
    message: "No room is left.",
  });
});

test("a machine whose progress makes no sense is told of, and told to stop", async () => {
  const { machine, controls } = await startMachine(({ say }) => say("data", jsonPayload({ status: 7 }), 1));
  expect(await refusalOf(manage(machine, "pull"))).toMatchObject({ status: 502, code: "upstream_error" });
  await until(() => controls.some(({ kind }) => kind === "cancel"), { what: "the machine to be told" });
});

test("a client that leaves has the pull stopped, before its first line as after it", async () => {
  for (const speaks of [false, true]) {
    const jobs: string[] = [];
    const { machine, controls } = await startMachine(({ head, say }) => {
      if (speaks) say("data", jsonPayload({ status: "pulling manifest" }), 1);
      jobs.push(head.id);
    });
    const leaving = new AbortController();
    const asking = manage(machine, "pull", leaving.signal);
    if (speaks) await asking;
    else asking.catch(() => undefined);
    const [job] = await until(() => jobs.length > 0 && jobs, { what: "the machine to have the job" });
    leaving.abort();
    await until(
      () => controls.some((told) => told.kind === "cancel" && told.job === job && told.reason === "client_closed"),
      {
        what: "the machine to be told to stop",
      },
    );
  }
});

test("a machine that nobody knows is 404, and what cannot be asked is 400 with the part that is wrong", async () => {
  const body = { model: "llama3.2" };
  const wrong: [string, object, number, string, string][] = [
    ["/machines/nowhere/models/pull", body, 404, "machine_not_found", "machine"],
    ["/machines/No_Where/models/pull", body, 400, "invalid_value", "machine"],
    ["/machines/cellar/models/burn", body, 400, "invalid_value", "action"],
    ["/machines/cellar/models/pull", {}, 400, "missing_required_parameter", "model"],
    ["/machines/cellar/models/pull", { model: "" }, 400, "invalid_value", "model"],
    ["/machines/cellar/models/pull", { ...body, force: true }, 400, "unsupported_parameter", "force"],
  ];
  for (const [path, sent, status, code, param] of wrong) {
    const response = await ask(path, { body: sent });
    expect([path, response.status, await errorOf(response)]).toMatchObject([path, status, { code, param }]);
  }
  expect(await refusalOf(ask("/models?machine=nowhere"))).toMatchObject({ status: 404, code: "machine_not_found" });
  expect((await ask("/machines/cellar/models/pull")).status).toBe(405);
});

test("a gateway that stops waits for no pull, and says so", async () => {
  const { machine, controls } = await startMachine(({ say }) => say("data", jsonPayload({ status: "pulling" }), 1));
  await using gateway = await startGateway({ natsUrl: fleet.nats.url, redisUrl: fleet.redis.url });
  const response = await ask(`/machines/${machine}/models/pull`, {
    body: { model: "llama3.2" },
    at: `${gateway.operationsUrl}/admin/v1`,
  });
  const [exitCode, told] = await Promise.all([gateway.terminate(), response.text()]);
  const [, last] = told.trimEnd().split("\n");
  expect([exitCode, errorBody.parse(JSON.parse(last ?? "")).error.code]).toEqual([0, "shutting_down"]);
  expect(controls.some(({ kind }) => kind === "cancel")).toBe(true);
});

test("only an admin key lists and manages", async () => {
  const { key } = fleet.endpoint;
  expect((await ask("/models", { key })).status).toBe(403);
  expect((await ask("/machines/cellar/models/pull", { key, body: { model: "llama3.2" } })).status).toBe(403);
  expect((await ask("/models", { key: "sk-1234" })).status).toBe(401);
});

test("a change asked of a machine stands in the gateway's log, with the key that asked", async () => {
  const { machine } = await startMachine(({ say }) => say("end", handMadeEnd, 1));
  await ask(`/machines/${machine}/models/unload`, { body: { model: "a-model-of-its-own" } });
  const logged = await fleet.gateways[0]?.logLines();
  expect(logged?.filter((line) => line["model"] === "a-model-of-its-own")).toMatchObject([
    { level: 30, by: `admin ${adminId}`, machine, action: "unload", request: expect.stringMatching(/^req_/) },
  ]);
});
