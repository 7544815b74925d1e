import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { byteTokens, writeTinyGguf } from "../harness/tiny-gguf.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { engine, noEngine } from "./tiny-runtime.ts";

const run = promisify(execFile);
const script = ["A", " line", " of ", ...byteTokens("é"), "xactly", " this."];
const whole = "A line of éxactly this.";

const folder = folderOfTests();
let file: string;
beforeAll(async () => {
  file = await writeTinyGguf(folder, { name: "tiny", scripts: { "<|assistant|>": script } });
});

const nowhere = { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0" };
const engineDir = "dir" in engine && engine.dir !== undefined ? { TRUNKLINE_ENGINE_DIR: engine.dir } : {};

describe.skipIf(noEngine)("trunkline up --gguf", () => {
  let up: TrunklineProcess;
  let endpoint: Endpoint;
  beforeAll(async () => {
    const args = ["up", "--json", "--gguf", file];
    up = await TrunklineProcess.start({ args, settings: { ...nowhere, ...engineDir } });
    const [line] = await up.printed(/^.*\n/);
    const ready: { base_url: string; api_key: string; runtime: string } = JSON.parse(line);
    expect(ready.runtime).toBe("llama");
    endpoint = new Endpoint({ baseUrl: ready.base_url, key: ready.api_key });
  });
  afterAll(() => up[Symbol.asyncDispose]());

  const ask = (more: object = {}): Promise<{ stdout: string }> => {
    const body = { model: "tiny", temperature: 0, messages: [{ role: "user", content: "Hello" }], ...more };
    const [url, bearer] = [`${endpoint.baseUrl}/chat/completions`, `authorization: Bearer ${endpoint.key}`];
    return run("curl", ["-sSN", url, "-H", bearer, "-H", "content-type: application/json", "-d", JSON.stringify(body)]);
  };

  test("trunkline up --gguf offers the file as a model", async () => {
    const { stdout } = await run("curl", [
      "-sS",
      `${endpoint.baseUrl}/models`,
      "-H",
      `authorization: Bearer ${endpoint.key}`,
    ]);
    const { data }: { data: object[] } = JSON.parse(stdout);
    expect(data).toEqual([
      expect.objectContaining({
        id: "tiny",
        owned_by: "gguf",
        context_window: 512,
        size_mb: 3,
        runtime_profile: "auto",
      }),
    ]);
  });

  test("trunkline up --gguf answers its exact script through curl, whole", async () => {
    const { stdout } = await ask();
    const answer: object = JSON.parse(stdout);
    expect(answer).toMatchObject({
      choices: [{ message: { role: "assistant", content: whole }, finish_reason: "stop" }],
      usage: { completion_tokens: script.length },
    });
  });

  test("trunkline up --gguf tells the sampling of the file in a response that was sent none", async () => {
    const client = new OpenAI({ baseURL: endpoint.baseUrl, apiKey: endpoint.key });
    const asked = { model: "tiny", input: "Hello", max_output_tokens: 1 };
    expect(await client.responses.create(asked)).toMatchObject({ temperature: 0.8, top_p: 0.95 });
    expect(await client.responses.create({ ...asked, temperature: 0 })).toMatchObject({ temperature: 0, top_p: 0.95 });
  });

  test("trunkline up --gguf and as a stream", async () => {
    const { stdout } = await ask({ stream: true });
    const lines = stdout.split("\n").filter((line) => line.startsWith("data: {"));
    const chunks = lines.map((line): { choices: { delta: { content?: string } }[] } => JSON.parse(line.slice(6)));
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(whole);
    expect(stdout.trimEnd().endsWith("data: [DONE]")).toBe(true);
  });

  test("trunkline up --gguf names the bounds of numbers that its grammars do not hold, at each API", async () => {
    const old = { anyOf: [{ type: "integer", minimum: 0 }, { type: "null" }] };
    const young = { type: "number", exclusiveMaximum: 9.5 };
    const plain = { type: "object", properties: { minimum: { type: "integer" } } };
    const ignoredBy = async (path: string, fields: object): Promise<string | null> => {
      const body = JSON.stringify({ model: "tiny", ...fields });
      const headers = { authorization: `Bearer ${endpoint.key}`, "content-type": "application/json" };
      const response = await fetch(`${endpoint.baseUrl}${path}`, { method: "POST", headers, body });
      expect(await response.text()).not.toContain('"error":{');
      return response.headers.get("x-trunkline-ignored");
    };
    const messages = [{ role: "user", content: "Hello" }];
    const asked = (schema: object) => ({
      messages,
      max_tokens: 1,
      response_format: { type: "json_schema", json_schema: { name: "a", schema } },
    });
    const schema = { type: "object", properties: { old, young } };
    const at = "response_format.json_schema.schema.properties";
    const names = `${at}.old.anyOf[0].minimum,${at}.young.exclusiveMaximum`;
    expect(await ignoredBy("/chat/completions", { ...asked(schema), user: "me" })).toBe(`user,${names}`);
    expect(await ignoredBy("/chat/completions", { ...asked(schema), stream: true })).toBe(names);
    expect(await ignoredBy("/chat/completions", asked(plain))).toBeNull();
    const text = { format: { type: "json_schema", name: "a", schema } };
    const response = { input: "Hello", max_output_tokens: 1, text, store: false };
    expect(await ignoredBy("/responses", response)).toContain("text.format.schema.properties.young.exclusiveMaximum");
    const output_config = { format: { type: "json_schema", schema } };
    expect(await ignoredBy("/messages", { messages, max_tokens: 1, output_config })).toBe("output_config.format");
  });

  test("trunkline up --gguf answers its exact script through Ollama's package, whole, in lines and without a template", async () => {
    const host = new URL(endpoint.baseUrl).origin;
    const client = new Ollama({ host, headers: { authorization: `Bearer ${endpoint.key}` } });
    const options = { temperature: 0 };
    const asked = { model: "tiny:latest", messages: [{ role: "user", content: "Hello" }], options };
    const told = { message: { content: whole }, done_reason: "stop", eval_count: script.length };
    expect(await client.chat({ ...asked, think: false })).toMatchObject(told);
    const lines = await Array.fromAsync(await client.chat({ ...asked, stream: true }));
    expect(lines.map(({ message }) => message.content).join("")).toBe(whole);
    expect((await client.generate({ model: "tiny", prompt: "Hello", options })).response).toBe(whole);
    const raw = { model: "tiny", prompt: "<|assistant|>", raw: true, options: { ...options, num_predict: 2 } };
    expect(await client.generate(raw)).toMatchObject({ response: "A line", done_reason: "length" });
    const shown = await client.show({ model: "tiny" });
    expect(shown).toMatchObject({ model_info: { "llama.context_length": 512 } });
    expect(shown.details).toMatchObject({
      family: "llama",
      parameter_size: expect.stringMatching(/^\d+(\.\d+)?[KM]$/),
    });
    await expect(client.embed({ model: "tiny", input: "a" })).rejects.toThrow("The model 'tiny' does not embed.");
  });

  test("trunkline up --gguf prints nothing but its line, and stops when it is told to", async () => {
    expect(await up.terminate()).toBe(exitCodes.ok);
    expect((await up.stdout()).trimEnd().split("\n")).toHaveLength(1);
    expect((await up.stderr()).split("\n").filter((line) => line !== "" && !line.startsWith("{"))).toEqual([]);
  });
});

test("without the engine it says in one line how to install it", async () => {
  const { exitCode, stdout, stderr } = await trunkline(["up", "--gguf", file], {
    ...nowhere,
    TRUNKLINE_ENGINE_DIR: folder,
  });
  expect([exitCode, stdout]).toEqual([exitCodes.unavailable, ""]);
  expect(stderr).toMatch(/^trunkline: .*npm install --no-save node-llama-cpp@3\.22\.1\n$/);
});
