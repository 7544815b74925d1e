import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { findPythonSdk } from "./find-python-sdk.ts";

const run = promisify(execFile);
const sdk = await findPythonSdk("ollama");
const program = join(import.meta.dirname, "ollama_python.py");

describe.skipIf("missing" in sdk)("Ollama's Python package, changed in nothing but host and key,", () => {
  let up: UpProcess;
  let got: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    if ("missing" in sdk) return;
    up = await startUp();
    const { OLLAMA_API_KEY: _, ...own } = process.env;
    const { baseUrl, key } = up.endpoint;
    const env = { ...own, PYTHONPATH: sdk.path, TRUNKLINE_ORIGIN: new URL(baseUrl).origin, CHAT_KEY: key };
    const { stdout } = await run(sdk.python, [program], { env, timeout: 40_000 });
    got = JSON.parse(stdout) as Record<string, unknown>;
  });
  afterAll(() => up?.[Symbol.asyncDispose]());

  test("lists the models, shows one, and sees which ones are loaded", () => {
    const names = ["scripted:embed", "scripted:latest", "scripted:plain", "scripted:vision"];
    const [listed, ...shown] = got["models"] as [string[], ...unknown[]];
    expect(listed).toEqual(expect.arrayContaining(names));
    expect(shown).toEqual([["completion", "tools", "thinking"], expect.any(Number), 0]);
  });

  test("chats, whole and in pieces, also asynchronously and with a key of the environment", () => {
    const said = "abc-0 abc-1 abc-2 ";
    expect(got["chats"]).toEqual([said, said, "stop", 3]);
    expect(got["asynchronous"]).toEqual(["token-0 ", "token-1 ", ""]);
    expect(got["key_of_the_environment"]).toBe("token-0 ");
  });

  test("hears thoughts, and has its functions called", () => {
    expect(got["thoughts"]).toEqual([expect.stringMatching(/./), "token-0 "]);
    expect(got["tools"]).toEqual([{ city: "Oslo" }, "stop"]);
  });

  test("continues prompts, and makes vectors", () => {
    const said = "token-0 token-1 ";
    expect(got["prompts"]).toEqual([said, said, said]);
    expect(got["vectors"]).toEqual([2, 2, true]);
  });

  test("throws each refusal with its status and its words", () => {
    expect(got["refusals"]).toEqual([
      [401, expect.stringMatching(/^Incorrect API key/)],
      [404, expect.stringContaining("'nobody' does not exist")],
      [403, expect.stringContaining("trunkline models pull")],
      [403, expect.stringContaining("trunkline models rm")],
      [403, expect.stringContaining("trunkline routes set")],
      [403, expect.stringContaining("ollama create")],
      [403, expect.stringContaining("ollama push")],
      [400, expect.stringContaining("images")],
    ]);
  });
});
