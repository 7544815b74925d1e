import { execFile } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { samplesOf } from "../../services/console/chat-samples.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { findPythonSdk } from "./find-python-sdk.ts";

const run = promisify(execFile);
const folder = folderOfTests();
const python = await findPythonSdk("openai");

/** A text with what ends strings, expands, or reorders code in one of the languages. */
const text = 'It\'s "quoted": $HOME `ls` \\n ${a} {b} %s\nEND\n\'\'\'""" 🦙\u2028\u202e';
const parameters = { type: "object", properties: { city: { type: ["string", "null"] } }, additionalProperties: false };
const request = {
  model: "llama3.2",
  messages: [
    { role: "system", content: text },
    { role: "user", content: "Hello" },
    { role: "assistant", content: text },
    { role: "user", content: [{ type: "text", text }] },
  ],
  temperature: 0.5,
  tools: [{ type: "function", function: { name: "weather", parameters, strict: true } }],
};

let ollama: FakeOllama;
let up: UpProcess;
let asked: readonly { readonly content: string }[];
let toolsAsked: unknown;
beforeAll(async () => {
  ollama = await FakeOllama.start({ models: [{ name: "llama3.2:latest", capabilities: ["completion", "tools"] }] });
  ollama.onChat = (chat) => {
    asked = chat.request.body["messages"] as typeof asked;
    toolsAsked = chat.request.body["tools"];
    chat.say("It was understood.");
    chat.done();
  };
  up = await startUp({ TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url });
  await up.endpoint.untilListed("llama3.2");
  await symlink(join(import.meta.dirname, "../../node_modules"), join(folder, "node_modules"));
});
afterAll(async () => {
  await up?.[Symbol.asyncDispose]();
  await ollama?.[Symbol.asyncDispose]();
});

const runs: Readonly<Record<string, (code: string, env: NodeJS.ProcessEnv) => Promise<{ readonly stdout: string }>>> = {
  curl: (code, env) => run("sh", ["-c", code], { env }),
  ...(!("missing" in python) && {
    "Python, with the package openai": (code, env) =>
      run(python.python, ["-c", code], { env: { ...env, PYTHONPATH: python.path } }),
  }),
  "TypeScript, with the package openai": async (code, env) => {
    await writeFile(join(folder, "chat.mts"), code);
    return run(process.execPath, ["chat.mts"], { cwd: folder, env });
  },
};

test.each(Object.keys(runs))("a conversation that is copied as %s sends the same request as pasted", async (name) => {
  const code = samplesOf(request, up.endpoint.baseUrl)[name] ?? "";
  expect(code).not.toMatch(/[\u2028\u202e]/);
  asked = [];
  const env = { ...process.env, TRUNKLINE_KEY: up.endpoint.key };
  const { stdout } = (await runs[name]?.(code, env)) ?? { stdout: "" };
  expect(stdout).toContain("It was understood.");
  expect(asked.map(({ content }) => content)).toEqual([text, "Hello", text, text]);
  expect(toolsAsked).toMatchObject([{ function: { name: "weather", parameters } }]);
});
