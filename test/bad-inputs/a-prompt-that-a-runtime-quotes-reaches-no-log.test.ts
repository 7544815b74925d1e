import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { runtimeLineBytesMax } from "../../services/agent/runtimes/runtime-answer.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import type { LogLine } from "../harness/trunkline-process.ts";
import { trunkline, type Settings } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { eventKinds, kinds, startFake, type OnChat } from "../integration/runtime-faults/faked-runtimes.ts";

const prompt = "my doctor says it is gout";
/** Far more than the bound: an event whose end comes with the piece that exceeds it is read all the same. */
const manyBytes = "x".repeat(2 * runtimeLineBytesMax);

const error = (told: unknown): string => JSON.stringify({ error: told });
const refuses =
  (status: number, body: string, contentType = "application/json"): OnChat =>
  (chat) =>
    chat.refuseWith(status, { contentType, body });
/** Says a word, these bytes, and nothing more. */
const goesOnWith =
  (...bytes: readonly string[]): OnChat =>
  (chat) => {
    chat.say("Well, ");
    for (const each of bytes) chat.raw(each);
    chat.end();
  };
/** The same as an event and as a line of JSON, of which each runtime sends what it would. */
const says = (value: unknown): string[] => [`data: ${JSON.stringify(value)}\n\n`];
const delta = (fields: object, more: object = {}): object => ({
  choices: [{ index: 0, delta: fields, finish_reason: null, ...more }],
});
const call = (called: object): object => delta({ tool_calls: [{ index: 0, id: "c", function: called }] });
const validation = `1 validation error:\n  {'type': 'x', 'loc': ('body', '${prompt}', 'type'), 'input': '${prompt}'}`;

/** All ways in which a runtime may say a prompt back, where it should have answered. */
const quotes: Readonly<Record<string, OnChat>> = {
  "a refusal": refuses(400, error({ message: `bad prompt: ${prompt}`, param: prompt, code: prompt, type: prompt })),
  "a text as a refusal": refuses(422, prompt, "text/plain"),
  "a validation error": refuses(500, error({ message: validation })),
  "a list of validation errors": refuses(
    422,
    JSON.stringify({ detail: [{ loc: ["body", "messages"], input: prompt }] }),
  ),
  "a failure": refuses(500, error(`template error near '${prompt}'`)),
  "a failure of a grammar": refuses(500, error({ message: `grammar error at ${prompt}` })),
  "an overflow": refuses(400, error({ message: `the context length is exceeded by ${prompt}` })),
  "a page": refuses(502, `<html>${prompt}</html>`, "text/html"),
  "a page as success": refuses(200, `<html>${prompt}</html>`, "text/html"),
  "a text as success": refuses(200, `${prompt}\n\n`, "text/plain"),
  "JSON as success": refuses(200, JSON.stringify({ choices: prompt, message: { [prompt]: prompt } })),
  "a line that is no JSON": goesOnWith(`data: {"choices": ${prompt}\n\n`, `{"message": ${prompt}\n`),
  "an error amid the answer": goesOnWith(...says({ error: { message: prompt, code: prompt } })),
  "an error as a text": goesOnWith(...says({ error: prompt })),
  "an error as a line": goesOnWith(`${JSON.stringify({ error: prompt })}\n`),
  "an error as a named event": goesOnWith(`event: error\ndata: ${JSON.stringify({ message: prompt })}\n\n`),
  "choices that are a text": goesOnWith(...says({ choices: prompt })),
  "a place that is a text": goesOnWith(...says({ choices: [{ index: prompt, delta: { content: prompt } }] })),
  "a line of wrong types": goesOnWith(
    `${JSON.stringify({ message: { content: { [prompt]: prompt } }, done: prompt })}\n`,
  ),
  "arguments that are no JSON": goesOnWith(
    ...says(call({ name: "f", arguments: `{"${prompt}` })),
    ...says(delta({}, { finish_reason: "tool_calls" })),
  ),
  "a call without a name": goesOnWith(
    ...says(call({ arguments: prompt })),
    ...says(delta({}, { finish_reason: "tool_calls" })),
  ),
  "a reason to fail": goesOnWith(...says(delta({ content: prompt }, { finish_reason: "error" }))),
  "an answer that breaks off": goesOnWith(
    ...says(delta({ content: prompt })),
    `data: {"choices":[{"delta":{"${prompt}`,
  ),
};

/** Faults whose cause an operator has to be told, and what the reason says. */
const told: readonly [what: string, onChat: OnChat, reason: RegExp][] = [
  ["no finish reason", goesOnWith(), /without a finish_reason|before it was complete/],
  ["an event that is too long", goesOnWith(`data: ${manyBytes}\n\n`), /runtimeLineBytesMax/],
  ["an empty 200", refuses(200, "", "text/event-stream"), /before it said anything|before it was complete/],
];

const fleetTold = z.object({
  data: z.tuple([
    z.object({
      last_fault: z.object({ code: z.string(), model: z.string(), reason: z.string().nullable() }).nullable(),
    }),
  ]),
});
const listed = z.object({
  data: z.array(z.object({ id: z.string(), capabilities: z.object({ tools: z.boolean() }) })),
});

describe.skipIf(lentOnly("nats", "redis"))("a prompt that a runtime quotes", () => {
  const parts = new AsyncDisposableStack();
  let fleet: Fleet;
  let settings: Settings;
  let admin: Endpoint;
  let fakes: ReadonlyMap<string, Awaited<ReturnType<typeof startFake>>>;
  /** The served id of model `m` on each kind of runtime, and whether that model takes tools. */
  let models: ReadonlyMap<string, { readonly id: string; readonly tools: boolean }>;
  let asked = 0;

  beforeAll(async () => {
    fakes = new Map(await Promise.all(kinds.map(async (kind) => [kind, parts.use(await startFake(kind))] as const)));
    const level = { TRUNKLINE_LOG_LEVEL: "trace" };
    const urls = [...fakes.values()].map(({ url }) => url).join(",");
    const env = { ...level, TRUNKLINE_RUNTIME: "auto", TRUNKLINE_RUNTIME_URL: urls };
    fleet = parts.use(await startFleet({ machines: { attic: { env } }, gatewayEnv: level }));
    [settings, admin] = await Promise.all([fleet.operatorSettings(), fleet.admin()]);
    const all = async () => {
      const { data } = listed.parse(await (await fleet.endpoint.get("/models")).json());
      return data.length === kinds.length && data;
    };
    const found = await until(all, { what: "the models of every kind of runtime", timeoutMs: 10_000 });
    const own = (kind: string) => found.find(({ id }) => id.endsWith(kind)) ?? found.find(({ id }) => id === "m");
    models = new Map(
      kinds.map((kind) => [kind, { id: own(kind)?.id ?? "", tools: own(kind)?.capabilities.tools ?? false }]),
    );
  });
  afterAll(() => parts.disposeAsync());

  /** Asks the model of one kind of runtime, which answers like this, and gives what the client was told. */
  async function ask(kind: string, onChat: OnChat): Promise<string> {
    const [fake, model] = [fakes.get(kind), models.get(kind)];
    if (fake === undefined || model === undefined) throw new Error(`there is no fake of ${kind}`);
    fake.onChat = onChat;
    asked += 1;
    const tools = model.tools ? { tools: [{ type: "function", function: { name: "f" } }] } : {};
    const stream = asked % 2 === 0;
    const response = await fleet.endpoint.chat({ model: model.id, says: `${prompt}, said ${asked}`, stream, ...tools });
    return response.text();
  }

  async function lastFault() {
    return fleetTold.parse(await (await admin.get("/fleet")).json()).data[0].last_fault;
  }

  const processes = () => [fleet.agent("attic"), ...fleet.gateways];
  const linesOf = async (...messages: string[]): Promise<LogLine[]> =>
    (await Promise.all(processes().map((each) => each.logLines()))).flat().filter(({ msg }) => messages.includes(msg));

  test.each(kinds)(
    "a prompt that a runtime quotes reaches neither a log nor the fleet's status, however %s says it",
    async (kind) => {
      for (const onChat of Object.values(quotes)) {
        await ask(kind, onChat);
        expect(JSON.stringify(await lastFault())).not.toContain(prompt);
      }
      for (const each of processes())
        expect([each.title, (await each.stderr()).includes(prompt)]).toEqual([each.title, false]);
    },
  );

  test("a prompt that a runtime quotes leaves every failure with its reason in the log of the machine, and with its code at the gateway", async () => {
    const failures = await linesOf("job failed", "request failed", "stream failed");
    expect(failures.length).toBeGreaterThan(kinds.length * 10);
    for (const line of failures) {
      const reason = line.msg === "job failed" ? line["internal"] : line["machine"];
      expect([line.msg, line["code"], reason]).not.toContain(undefined);
    }
  });

  test.each(told)(
    "a prompt that a runtime quotes does not hide what the operator needs to know: %s",
    async (_, onChat, reason) => {
      for (const kind of eventKinds) {
        const before = (await linesOf("job failed")).length;
        const answer = await ask(kind, onChat);
        await until(async () => (await linesOf("job failed")).length > before, { what: "the machine's line" });
        const onMachine = (await linesOf("job failed")).at(-1);
        expect(onMachine).toMatchObject({ code: "upstream_error", internal: expect.stringMatching(reason) });
        const [job, internal] = [onMachine?.["job"], onMachine?.["internal"]];
        const atGateway = async () => (await linesOf("request")).find((line) => line["job"] === job);
        const line = await until(atGateway, { what: "the gateway's line" });
        expect(line).toMatchObject({ outcome: "upstream_error", machine: "attic" });
        expect(line).not.toHaveProperty("internal");
        expect(await linesOf("a machine said why it failed")).toContainEqual(
          expect.objectContaining({ level: expect.anything(), request: line["request"], told: internal }),
        );
        expect(await lastFault()).toMatchObject({
          code: "upstream_error",
          model: models.get(kind)?.id,
          reason: internal,
        });
        expect(answer.includes(String(internal))).toBe(answer.includes("runtimeLineBytesMax"));
      }
      const { code, model, reason: last } = (await lastFault()) ?? {};
      const { stdout } = await trunkline(["status"], settings);
      expect(stdout).toMatch(/^last fault of attic, \d+\.\d s ago, /m);
      expect(stdout).toContain(` ago, ${model}: ${code}: ${last}\n`);
    },
  );
});
