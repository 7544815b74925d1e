import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPythonSdk } from "../conformance/find-python-sdk.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";

const run = promisify(execFile);

/** Why the suite is not run here; undefined if it is. */
const lane = process.env["CODING_CLIENTS"];
const suite =
  lane === undefined
    ? { missing: "it is downloaded from PyPI, which `npm run test:clients` does" }
    : await findPythonSdk("llm_comply");
if ("missing" in suite) console.log(`llm-comply is not run: ${suite.missing}`);

interface Outcome {
  readonly results: readonly { readonly id: string; readonly status: string; readonly errors: readonly string[] }[];
}

const formats = [
  ["open-responses", "image-input"],
  ["openai-chat", "chat-image-input"],
  ["anthropic", "anth-image-input"],
] as const;

describe.skipIf("missing" in suite)("llm-comply", () => {
  let up: UpProcess;
  beforeAll(async () => void (up = await startUp()));
  afterAll(() => up?.[Symbol.asyncDispose]());

  /** The ids of the failed tests, each with its first complaint. */
  async function failed(model: string, format: string, ...only: string[]): Promise<string[][]> {
    if ("missing" in suite) return [];
    const { baseUrl, key } = up.endpoint;
    const site = ["--base-url", baseUrl, "--api-key", key, "--model", model];
    const args = ["-m", "llm_comply.cli", ...site, "--format", format, "--json", ...only];
    const env = { ...process.env, PYTHONPATH: suite.path };
    // Its exit code tells of failed tests too.
    const told = await run(suite.python, args, { env }).catch((error: { stdout: string }) => error);
    const { results }: Outcome = JSON.parse(told.stdout);
    expect(results).not.toEqual([]);
    return results.filter(({ status }) => status === "failed").map(({ id, errors }) => [id, errors[0] ?? ""]);
  }

  test.each(formats)(
    "llm-comply finds nothing in the format %s but that the model sees no picture",
    async (format, picture) => {
      expect(await failed("scripted", format)).toEqual([[picture, "HTTP 400 (expected [200])"]]);
    },
  );

  test.each(formats)(
    "llm-comply finds nothing in the format %s in a picture for a model that sees it",
    async (format, picture) => {
      expect(await failed("scripted:vision", format, "--filter", picture)).toEqual([]);
    },
  );
});
