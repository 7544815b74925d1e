import { Ollama } from "ollama";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { limitedKey } from "./limited-key.ts";
import { callTwice, cities, failInTheMiddle, sayHello } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";
import { WatchedFetch } from "./watched-fetch.ts";

const clientOf = ({ endpoint }: Pick<UpProcess, "endpoint">, { key = endpoint.key, fetch }: Partial<Options> = {}) =>
  new Ollama({
    host: new URL(endpoint.baseUrl).origin,
    headers: { Authorization: `Bearer ${key}` },
    ...(fetch && { fetch }),
  });
interface Options {
  readonly key: string;
  readonly fetch: typeof globalThis.fetch;
}
const says = (content: string, model = "scripted") => ({ model, messages: [{ role: "user", content }] });

describe("Ollama's package, with the demonstration,", () => {
  let up: UpProcess;
  let client: Ollama;
  beforeAll(async () => {
    up = await startUp();
    client = clientOf(up);
  });
  afterAll(() => up[Symbol.asyncDispose]());

  test("is told the version, and that a server is there", async () => {
    expect((await client.version()).version).toMatch(/^\d+\.\d+\.\d+$/);
    const root = await fetch(new URL(up.endpoint.baseUrl).origin);
    expect(await root.text()).toBe("Ollama is running");
  });

  test("is told why an answer is cut short, whole and in lines", async () => {
    const asked = { ...says("/script tokens=50"), options: { num_predict: 2 } };
    expect(await client.chat(asked)).toMatchObject({ done_reason: "length", eval_count: 2 });
    const lines = await Array.fromAsync(await client.chat({ ...asked, stream: true }));
    expect(lines.at(-1)).toMatchObject({ done: true, done_reason: "length" });
  });

  test.each([
    ["pull", () => client.pull({ model: "a" }), "trunkline models pull"],
    ["delete", () => client.delete({ model: "a" }), "trunkline models rm"],
    ["copy", () => client.copy({ source: "a", destination: "b" }), "trunkline routes set"],
    ["create", () => client.create({ model: "a", from: "b" }), "ollama create"],
    ["push", () => client.push({ model: "a" }), "ollama push"],
    ["unload", () => client.generate({ model: "scripted", prompt: "", keep_alive: 0 }), "trunkline models unload"],
  ])("is refused %s, and told the command that does it", async (_, act, command) => {
    const error = await thrownBy(act());
    expect(error).toMatchObject({ status_code: 403, message: expect.stringContaining(command) });
  });

  test("throws each failure with its status and its words", async () => {
    const wrong = clientOf(up, { key: "nonsense" });
    expect(await thrownBy(wrong.list())).toMatchObject({ status_code: 401, message: /^Incorrect API key/ });
    const none = await thrownBy(client.chat(says("Hello", "nobody")));
    expect(none).toMatchObject({ status_code: 404, message: /'nobody' does not exist/ });
    const range = await thrownBy(client.chat({ ...says("Hello"), options: { top_p: 7 } }));
    expect(range).toMatchObject({ status_code: 400, message: "'options.top_p' must be at most 1." });
    const plain = await thrownBy(client.chat({ ...says("Hello", "scripted:plain"), think: true, tools: [tool] }));
    expect(plain).toMatchObject({ status_code: 400, message: /does not support tools/ });
  });

  test("finds every name with and without :latest, also that of a route, and sees nothing outside its scopes", async () => {
    const env = { TRUNKLINE_STATE_DIR: up.stateDir };
    expect((await trunkline(["routes", "set", "gpt-4", "scripted"], env)).exitCode).toBe(0);
    const key = await limitedKey(up, "--scopes", "scrip*ed,gpt-4");
    const narrow = clientOf(up, { key });
    await until(async () => (await client.list()).models.some(({ name }) => name === "gpt-4:latest"), {
      what: "the route to be live",
    });
    expect((await narrow.list()).models.map(({ name }) => name).toSorted()).toEqual([
      "gpt-4:latest",
      "scripted:embed",
      "scripted:latest",
    ]);
    for (const model of ["gpt-4", "gpt-4:latest", "scripted", "scripted:latest"]) {
      expect(await narrow.chat(says("/script tokens=1", model))).toMatchObject({
        model,
        message: { content: "token-0 " },
      });
      expect(await narrow.show({ model })).toMatchObject({ capabilities: ["completion", "tools", "thinking"] });
    }
    for (const act of [
      () => narrow.chat(says("Hello", "scripted:plain")),
      () => narrow.generate({ model: "scripted:plain", prompt: "" }),
      () => narrow.show({ model: "scripted:plain" }),
    ])
      expect(await thrownBy(act())).toMatchObject({ status_code: 404 });
  });

  test("is held to the limits of its key, a load included", async () => {
    const limited = clientOf(up, { key: await limitedKey(up, "--rpm", "2") });
    await limited.chat(says("/script tokens=1"));
    await limited.generate({ model: "scripted", prompt: "" });
    expect(await thrownBy(limited.chat(says("Hello")))).toMatchObject({
      status_code: 429,
      message: /2 requests a minute/,
    });
    const short = clientOf(up, { key: await limitedKey(up, "--budget", "3000/day") });
    const lines = await Array.fromAsync(await short.chat({ ...says("/script tokens=20000"), stream: true }));
    expect(lines.at(-1)).toMatchObject({ done: true, done_reason: "length" });
    const told = lines.filter((line) => "x_trunkline" in line);
    expect(told).toMatchObject([{ message: { content: "" }, x_trunkline: "x-trunkline-limit: budget" }]);
  });
});

const tool = { type: "function", function: { name: "get_weather", description: "The weather", parameters: {} } };

describe("Ollama's package", () => {
  let staged: StagedVllm;
  let client: Ollama;
  let watched: WatchedFetch;
  beforeAll(async () => void (staged = await startStagedVllm()));
  beforeEach(() => {
    watched = new WatchedFetch();
    client = clientOf(staged.up, { fetch: watched.fetch });
    staged.answers(sayHello);
  });
  afterAll(() => staged[Symbol.asyncDispose]());
  const ask = (fields: object = {}) => ({ ...says("How cold is Oslo?", staged.model), ...fields });

  test("has each option honoured, and hears which ones belong to the machine", async () => {
    const options = {
      temperature: 0.5,
      top_p: 0.5,
      top_k: 40,
      min_p: 0.1,
      repeat_penalty: 1.1,
      seed: 7,
      stop: ["END"],
    };
    const penalties = { presence_penalty: 0.5, frequency_penalty: 0.25 };
    await client.chat(ask({ options: { ...options, ...penalties, num_predict: 9, num_ctx: 8_192 }, keep_alive: "5m" }));
    const { repeat_penalty: repetition_penalty, ...same } = options;
    expect(staged.asked()).toMatchObject({ ...same, ...penalties, repetition_penalty, max_tokens: 9 });
    expect(watched.ignored).toEqual(["options.num_ctx,keep_alive"]);
  });

  test("shows an image, and gets an answer that fits a schema", async () => {
    const data = "iVBORw0KGgo=";
    const schema = { type: "object", properties: { city: { type: "string" } } };
    await client.generate({ model: staged.model, prompt: "What is it?", images: [data], format: schema });
    expect(staged.asked()).toMatchObject({
      messages: [{ content: [{ text: "What is it?" }, { image_url: { url: `data:image/png;base64,${data}` } }] }],
      response_format: { type: "json_schema", json_schema: { schema } },
    });
    await client.chat(ask({ format: "json" }));
    expect(staged.asked()).toMatchObject({ response_format: { type: "json_object" } });
  });

  test("gets several calls at once, and its results reach them by the names of the tools or in their order", async () => {
    staged.answers(callTwice);
    const { message } = await client.chat(ask({ tools: [tool] }));
    expect(message.tool_calls?.map((call) => call.function.arguments)).toEqual(cities.map((city) => ({ city })));
    const results = cities.map((city) => ({ role: "tool", content: city }));
    await client.chat(ask({ messages: [...ask().messages, message, ...results], tools: [tool] }));
    const { messages } = staged.asked() as { messages: { tool_call_id?: string }[] };
    expect(messages.slice(-2)).toMatchObject(
      cities.map((city) => ({ role: "tool", tool_call_id: `call_${city}`, content: city })),
    );
  });

  test("continues a text without a template, and fills a gap", async () => {
    const prompt = "def add(";
    const raw = await client.generate({ model: staged.model, prompt, raw: true, options: { num_predict: 3 } });
    expect(raw).toMatchObject({ done: true, response: expect.stringMatching(/./) });
    expect(staged.vllm.texts.at(-1)?.body).toMatchObject({ prompt, max_tokens: 3 });
    await client.generate({ model: staged.model, prompt, suffix: "return sum" });
    expect(staged.vllm.texts.at(-1)?.body).toMatchObject({ prompt, suffix: "return sum" });
  });

  test("throws what broke a stream in its middle, and hears of no end", async () => {
    staged.answers(failInTheMiddle);
    const heard: string[] = [];
    const error = await thrownBy(
      (async () => {
        for await (const { message, done } of await client.chat({ ...ask(), stream: true }))
          heard.push(done ? "done" : message.content);
      })(),
    );
    expect([heard, error]).toMatchObject([["Hello "], { message: /model/ }]);
  });

  test("stops the runtime when it leaves", async () => {
    staged.answers((chat) => chat.say("Hello "));
    const stream = await client.chat({ ...ask(), stream: true });
    const over = thrownBy(Array.fromAsync(stream));
    await until(() => staged.vllm.atWork === 1, { what: "the runtime to work" });
    stream.abort();
    expect(await over).toMatchObject({ name: "AbortError" });
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop" });
  });
});
