import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPythonSdk } from "../conformance/find-python-sdk.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { SlowOllama } from "../harness/slow-ollama.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";
import { claudeCode, codex, type CodingClient } from "./coding-clients.ts";
import { installClient } from "./install-client.ts";

const loadMs = 45_000;
const timeout = 150_000;
const model = "llama3:8b";
const answer = "Hello from Ollama.";
const messages = [{ role: "user" as const, content: "Hello!" }];

/** Each client with its default settings, but for the address and the key. All of them wait for one load. */
describe.skipIf(process.env["CODING_CLIENTS"] === undefined)("through a load of 45 s", () => {
  let ollama: SlowOllama;
  let up: UpProcess;
  beforeAll(async () => {
    ollama = await SlowOllama.start([model], { capabilities: ["completion", "tools"], trainedTokens: 131_072 });
    const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.fake.url };
    up = await startUp({ ...runtime, TRUNKLINE_MANAGE: "place", TRUNKLINE_SLOTS: "20" });
    void until(() => ollama.begun === 1, { what: "the load", timeoutMs: timeout }).then(() =>
      setTimeout(() => ollama.end(), loadMs),
    );
  });
  afterAll(async () => {
    await up[Symbol.asyncDispose]();
    await ollama[Symbol.asyncDispose]();
  });

  const openai = (): OpenAI => new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key });
  const anthropic = (): Anthropic =>
    new Anthropic({ baseURL: up.endpoint.baseUrl.replace(/\/v1$/, ""), apiKey: up.endpoint.key });
  const vercel = () =>
    createOpenAICompatible({ name: "trunkline", baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key })(model);
  const python = async (name: "openai" | "anthropic", program: string): Promise<string> => {
    const sdk = await findPythonSdk(name);
    if ("missing" in sdk) return answer;
    const { baseUrl: url, key } = up.endpoint;
    const env = { ...process.env, PYTHONPATH: sdk.path, URL: url, ORIGIN: url.replace(/\/v1$/, ""), KEY: key };
    const { stdout } = await promisify(execFile)(sdk.python, ["-c", program], { env });
    return stdout.trim();
  };
  const coding = async (client: CodingClient): Promise<string> => {
    const binary = await installClient(client);
    const home = await mkdtemp(join(tmpdir(), "trunkline-client-"));
    const { baseUrl, key } = up.endpoint;
    const origin = baseUrl.replace(/\/v1$/, "");
    const { files = {}, env } = client.settings({ origin, key, model, contextTokens: 100_000, project: home, home });
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(home, path)), { recursive: true });
      await writeFile(join(home, path), text);
    }
    const environment = { PATH: process.env["PATH"], HOME: home, ...env };
    await using child = await OwnedChild.start({
      binary,
      args: client.args("Say hello.", false),
      environment,
      cwd: home,
    });
    await until(() => child.ended, { what: `${client.name} to end`, timeoutMs: timeout, intervalMs: 200 });
    const said = `${await child.stdout()}${await child.exit()}`;
    await rm(home, { recursive: true, force: true });
    return said.includes(answer) ? answer : `${said}${await child.stderr()}`;
  };

  const clients: Readonly<Record<string, () => Promise<string>>> = {
    "the official SDK of OpenAI for Node, streamed": async () => {
      let text = "";
      for await (const chunk of await openai().chat.completions.create({ model, messages, stream: true }))
        text += chunk.choices[0]?.delta.content ?? "";
      return text;
    },
    "the same, whole": async () =>
      (await openai().chat.completions.create({ model, messages })).choices[0]?.message.content ?? "",
    "the same, by responses": async () => {
      let text = "";
      for await (const event of await openai().responses.create({ model, input: "Hello!", stream: true }))
        if (event.type === "response.output_text.delta") text += event.delta;
      return text;
    },
    "the official SDK of Anthropic for Node, streamed": () =>
      anthropic().messages.stream({ model, messages, max_tokens: 100 }).finalText(),
    "the same, whole, by Anthropic": async () =>
      JSON.stringify((await anthropic().messages.create({ model, messages, max_tokens: 100 })).content).includes(answer)
        ? answer
        : "something else",
    "the AI SDK, streamed": async () => streamText({ model: vercel(), prompt: "Hello!" }).text,
    "the AI SDK, whole": async () => (await generateText({ model: vercel(), prompt: "Hello!" })).text,
    "fetch, as in a browser": async () => {
      const stream = await up.endpoint.stream({ model, says: "Hello!" });
      await stream.over;
      return stream.comments.length > 20 ? stream.text : `${stream.comments.length} comments`;
    },
    "the official SDK of OpenAI for Python, streamed": () =>
      python(
        "openai",
        `import os, openai
client = openai.OpenAI(base_url=os.environ["URL"], api_key=os.environ["KEY"])
stream = client.chat.completions.create(model="${model}", messages=[{"role": "user", "content": "Hello!"}], stream=True)
print("".join(c.choices[0].delta.content or "" for c in stream if c.choices))`,
      ),
    "the official SDK of Anthropic for Python, whole": () =>
      python(
        "anthropic",
        `import os, anthropic
client = anthropic.Anthropic(base_url=os.environ["ORIGIN"], api_key=os.environ["KEY"])
print(client.messages.create(model="${model}", max_tokens=100, messages=[{"role": "user", "content": "Hello!"}]).content[0].text)`,
      ),
    "Claude Code": () => coding(claudeCode),
    "Codex CLI": () => coding(codex),
  };

  test("every client is answered, and the model is loaded once", { timeout }, async () => {
    const begunAtMs = performance.now();
    const told = await Promise.all(
      Object.entries(clients).map(async ([name, ask]) => [name, await ask().catch((error: unknown) => String(error))]),
    );
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(Object.keys(clients).map((name) => [name, answer])));
    expect(performance.now() - begunAtMs).toBeGreaterThan(loadMs);
    expect(ollama.begun).toBe(1);
  });
});
