import type { RequestListener } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import { modelsCommand } from "../../services/cli/commands/models.ts";
import { freePort } from "../harness/free-port.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { serverOfTest } from "../harness/server-of-test.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { trunkline, type Settings } from "../harness/trunkline-command.ts";
import { commandHere } from "../harness/trunkline-here.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";
import { jsonPayload } from "../harness/answer-payload.ts";

const offered: OfferedModel = {
  ...handMadeModel,
  id: "llama3.2",
  capabilities: { completion: true, vision: false, embedding: false, tools: true, thinking: false },
  context_window: 131_072,
  size_mb: 2_019,
  runtime: "ollama",
  loaded: true,
};

let fleet: Fleet;
let settings: Settings;
/** What the machine `attic` does with a manage job; each test says it anew. */
let onJob: (job: HandMadeJob) => void = () => undefined;
let attic: HandMadeAgent;

beforeAll(async () => {
  fleet = await startFleet({ machines: {} });
  settings = await fleet.operatorSettings();
  attic = await HandMadeAgent.start({
    natsUrl: fleet.nats.url,
    machine: "attic",
    model: offered,
    onJob: (job) => onJob(job),
  });
  await fleet.endpoint.untilListed("llama3.2");
});
afterAll(async () => {
  await attic[Symbol.asyncDispose]();
  await fleet[Symbol.asyncDispose]();
});

/** `trunkline models …` in this process, which is what it does in one of its own. */
async function models(args: readonly string[], environment: Settings = settings, clock: Clock = systemClock) {
  try {
    const { out, err } = await commandHere(modelsCommand, args, { environment, clock });
    return { exitCode: 0, stdout: out, stderr: err };
  } catch (error) {
    const { exitCode, said, message } = error as Error & { exitCode?: number; said: { out: string; err: string } };
    if (exitCode === undefined) throw error;
    return { exitCode, stdout: said.out, stderr: said.err + message };
  }
}

/** Something that answers on a port of this machine, and is no gateway of ours. */
async function somethingElse(answer: RequestListener): Promise<Settings> {
  return { ...settings, TRUNKLINE_OPERATIONS_URL: await serverOfTest(answer) };
}

test("the models of a fleet are a table", async () => {
  const { exitCode, stdout, stderr } = await trunkline(["models"], settings);
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 0,
    stdout: [
      "id        machine  runtime  capabilities   window    size  MLX  loaded\n",
      "llama3.2  attic    ollama   chat, tools   131,072  2.0 GB  no   yes\n",
    ].join(""),
    stderr: "",
  });
  expect((await models(["list", "--machine", "attic"])).stdout).toBe(stdout);
});

test("the models of a fleet are for programs one line of JSON, with the machines", async () => {
  const { stdout } = await models(["--json"]);
  expect(stdout).toMatch(/^\{.*\}\n$/);
  expect(JSON.parse(stdout)).toMatchObject({
    models: [{ id: "llama3.2", machine: "attic", context_window: 131_072, loaded: true }],
    machines: [{ machine: "attic", state: "listed" }],
  });
});

test("machines that could not be asked are told of on standard error, and the others are listed", async () => {
  const agent = await fleet.startAgent("shed", { models: ["scripted"] });
  await until(async () => (await models([])).stdout.includes("shed"), { what: "shed to be listed" });
  await agent.kill();
  const away = await until(
    async () => {
      const told = await models([]);
      return told.stderr.includes("not reachable") && told;
    },
    { what: "shed to be told of" },
  );
  expect(away).toMatchObject({ exitCode: 0, stderr: "Not listed: shed, which is not reachable.\n" });
  expect(away.stdout).toContain("llama3.2");
});

test("a pull says how far it has come, and at the end what is there; the only machine need not be named", async () => {
  const bodies: string[] = [];
  onJob = ({ head, body, say }) => {
    bodies.push(`${head.model} ${Buffer.from(body).toString()}`);
    say(
      "data",
      jsonPayload({ status: "pulling manifest" }, { status: "pulling ab", completedBytes: 5e8, totalBytes: 1e9 }),
      1,
    );
    say("data", jsonPayload({ status: "success" }), 2);
    say("end", handMadeEnd, 3);
  };
  expect(await models(["pull", "qwen3:8b"])).toEqual({
    exitCode: 0,
    stdout: "Pulled qwen3:8b on attic.\n",
    stderr: "qwen3:8b: pulling manifest\nqwen3:8b: pulling ab, 50 % of 1.0 GB\nqwen3:8b: success\n",
  });
  expect(await models(["pull", "qwen3:8b", "--machine", "attic", "--json"])).toEqual({
    exitCode: 0,
    stdout: '{"action":"pull","model":"qwen3:8b","machine":"attic"}\n',
    stderr: "",
  });
  expect(bodies).toEqual(['qwen3:8b {"action":"pull"}', 'qwen3:8b {"action":"pull"}']);
});

test.each([
  ["rm", "remove", "Removed"],
  ["load", "load", "Loaded"],
  ["unload", "unload", "Unloaded"],
])("models %s does what it says", async (word, action, done) => {
  const bodies: string[] = [];
  onJob = ({ body, say }) => {
    bodies.push(Buffer.from(body).toString());
    say("end", handMadeEnd, 1);
  };
  const told = await models([word, "llama3.2", "--machine", "attic"]);
  expect([told.exitCode, told.stdout, bodies]).toEqual([
    0,
    `${done} llama3.2 on attic.\n`,
    [JSON.stringify({ action })],
  ]);
});

test("models asks for a machine by name where there are several, and names all of them", async () => {
  await using _loft = await HandMadeAgent.start({
    natsUrl: fleet.nats.url,
    machine: "loft",
    model: offered,
    onJob: () => undefined,
  });
  await until(async () => (await models([])).stdout.includes("loft"), { what: "loft to be listed" });
  expect(await models(["rm", "qwen3"])).toMatchObject({
    exitCode: 64,
    stderr: "There is more than one machine: name one with --machine (attic, loft).",
  });
  expect(await models(["pull", "qwen3"])).toMatchObject({
    exitCode: 69,
    stderr: expect.stringMatching(/^No machine may pull models: TRUNKLINE_MANAGE .* --machine/),
  });
});

test("a refusal of a machine is told in its own words, and a change that fails after it began fails too", async () => {
  const message = "The owner of this machine does not allow to pull; TRUNKLINE_MANAGE=pull does.";
  const pull = () => models(["pull", "qwen3", "--machine", "attic"]);
  onJob = ({ say }) => say("fault", { code: "insufficient_permissions", message }, 1);
  expect(await pull()).toMatchObject({ exitCode: 1, stdout: "", stderr: message });
  onJob = ({ say }) => {
    say("data", jsonPayload({ status: "pulling manifest" }), 1);
    say("fault", { code: "upstream_error", message: "No room\u001b[2J is left." }, 2);
  };
  const stderr = "qwen3: pulling manifest\nNo room?[2J is left.";
  expect(await pull()).toMatchObject({ exitCode: 69, stdout: "", stderr });
});

test("a machine that nobody knows is told of", async () => {
  const told = await models(["pull", "qwen3", "--machine", "nowhere"]);
  expect([told.exitCode, told.stderr]).toEqual([1, expect.stringContaining("No machine 'nowhere'")]);
});

const media = { "content-type": "application/x-ndjson" };

test("models says that nothing listens there, with what to do", async () => {
  const env = { ...settings, TRUNKLINE_OPERATIONS_URL: "", TRUNKLINE_OPERATIONS_PORT: String(await freePort()) };
  const told = await models([], env);
  expect([told.exitCode, told.stderr]).toEqual([
    69,
    expect.stringMatching(/^Nothing listens at http:\/\/127\.0\.0\.1:\d+: start a gateway.*--operations-url/),
  ]);
  expect((await models(["pull", "x", "--machine", "a"], env)).exitCode).toBe(69);
});

test("an answer of a newer gateway with a further field is taken, and one of an older gateway without a count", async () => {
  const link = { token: "t", url: "http://site/console#sign-in=t", expires_at: "2026-01-01T00:00:00.000Z" };
  const env = await somethingElse((request, response) => {
    const answer = request.method === "POST" ? { ...link, further: 1 } : { object: "list", data: [] };
    response.end(JSON.stringify(answer));
  });
  expect(await trunkline(["console"], env)).toMatchObject({ exitCode: 0, stdout: `${link.url}\n` });
  expect((await trunkline(["sessions"], env)).stdout).toContain("Nobody is signed in");
});

test.each<[string, RequestListener]>([
  ["HTML", (_request, response) => void response.end("<html>")],
  ["other lines of JSON", (_request, response) => void response.writeHead(200, media).end('{"a":1}\n')],
  ["another JSON", (_request, response) => void response.end('{"hello":1}\n')],
  ["a redirect", (_request, response) => void response.writeHead(302, { location: "/" }).end()],
])("models says that something else listens there: %s", async (_, answer) => {
  const env = await somethingElse(answer);
  for (const args of [[], ["pull", "x", "--machine", "a"]]) {
    const told = await models(args, env);
    expect([told.exitCode, told.stderr]).toEqual([69, expect.stringContaining("is no operations port of Trunkline")]);
  }
});

test("a gateway that does not answer is not waited for for ever", async () => {
  let asked = false;
  const env = await somethingElse(() => {
    asked = true;
  });
  const turnable = new TurnableClock({ wallMs: 0 });
  const asking = models([], env, turnable);
  await until(() => asked, { what: "the gateway to be asked" });
  turnable.advance(15_000);
  expect(await asking).toMatchObject({ exitCode: 69, stderr: expect.stringContaining("no answer at http://") });
});

test("a gateway that breaks off is never taken for one that is done", async () => {
  const begun = '{"status":"pulling","completed_bytes":1,"total_bytes":2}\n';
  const ends: RequestListener[] = [
    (_request, response) => void response.writeHead(200, media).end(begun),
    (_request, response) => void response.writeHead(200, media).write(begun, () => response.destroy()),
  ];
  for (const answer of ends) {
    const told = await models(["pull", "x", "--machine", "a"], await somethingElse(answer));
    expect([told.exitCode, told.stdout, told.stderr]).toEqual([69, "", expect.stringContaining("broke off")]);
  }
});

test("a key that is refused is told of by the place where it was found, and what is no admin key goes nowhere", async () => {
  const refused = await models([], { ...settings, TRUNKLINE_ADMIN_KEY: mintKeyToken("admin").reveal() });
  expect([refused.exitCode, refused.stderr]).toEqual([
    78,
    expect.stringMatching(/^The admin key in TRUNKLINE_ADMIN_KEY was refused: /),
  ]);
  let asked = 0;
  const env = await somethingElse((_request, response) => {
    asked += 1;
    response.end();
  });
  for (const key of ["sk-1234", fleet.endpoint.key]) {
    const told = await models([], { ...env, TRUNKLINE_ADMIN_KEY: key });
    expect([told.exitCode, told.stderr]).toEqual([78, expect.stringContaining("TRUNKLINE_ADMIN_KEY is no admin key")]);
    expect(told.stderr).not.toContain(key);
  }
  expect(asked).toBe(0);
});

test("models tells both ways to have a key where none is found", async () => {
  const told = await models([], { ...settings, TRUNKLINE_ADMIN_KEY: "" });
  expect(told.exitCode).toBe(78);
  for (const way of [
    "TRUNKLINE_ADMIN_KEY",
    "trunkline keys issue --admin",
    "TRUNKLINE_STATE_DIR",
    "/nowhere/admin-key",
  ]) {
    expect(told.stderr).toContain(way);
  }
});
