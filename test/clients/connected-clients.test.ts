import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { trunkline } from "../../services/cli/trunkline.ts";
import { type CodingClient, codingClients } from "./coding-clients.ts";
import { ClientRun } from "./run-client.ts";
import { closing, greeting, spellingScript, task } from "./spelling-task.ts";

const lane = process.env["CODING_CLIENTS"];
const timeout = 900_000;

/** A client that `trunkline connect` configures: its settings are a person's own, without a word about the site. */
interface Connected {
  readonly program: string;
  /** A file of settings that the person had before. */
  readonly own: { readonly file: string; readonly text: string };
  /** Where the client's usual arguments name another configuration. */
  readonly args?: (task: string) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const withoutQuestions = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];

const connected: readonly Connected[] = [
  {
    program: "claude",
    own: { file: ".claude/settings.json", text: '{\n  "cleanupPeriodDays": 7\n}\n' },
    args: (prompt) => ["--print", prompt, "--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
  },
  {
    program: "codex",
    own: { file: ".codex/config.toml", text: "hide_agent_reasoning = true # mine\n" },
    args: (prompt) => ["exec", ...withoutQuestions, "--profile", "trunkline", prompt],
  },
  {
    program: "opencode",
    own: {
      file: ".config/opencode/opencode.json",
      text: '{\n  // mine\n  "autoupdate": false,\n  "share": "disabled",\n}\n',
    },
    env: { OPENCODE_DISABLE_MODELS_FETCH: "1" },
  },
  {
    program: "qwen",
    own: {
      file: ".qwen/settings.json",
      text: '{\n  "$version": 4, // mine\n  "privacy": { "usageStatisticsEnabled": false }\n}\n',
    },
    args: (prompt) => ["--approval-mode", "yolo", "--prompt", prompt],
  },
];

const known = connected.flatMap(({ program, own, args, env = {} }) => {
  const client = codingClients.find((each) => each.program === program);
  if (client === undefined) return [];
  const settings: CodingClient["settings"] = () => ({ files: { [own.file]: own.text }, env });
  const alone: CodingClient = { ...client, settings, ...(args === undefined ? {} : { args }) };
  return [[client.name, alone, own] as const];
});

describe.skipIf(lane === undefined).each(known)("%s, as `trunkline connect` configures it,", (_name, client, own) => {
  let run: ClientRun;
  beforeAll(async () => {
    run = await ClientRun.prepare(client);
    await writeFile(join(run.place.project, "greeting.txt"), greeting.before);
    run.follow(spellingScript(client, run.place.project));
  }, timeout);
  afterAll(() => run?.[Symbol.asyncDispose]());

  async function connect(...args: readonly string[]): Promise<{ exitCode: number; said: string }> {
    let said = "";
    const output = { write: (text: string) => (said += text) };
    const environment = {
      HOME: run.place.home,
      TRUNKLINE_STATE_DIR: run.staged.up.stateDir,
      TRUNKLINE_BASE_URL: run.staged.up.endpoint.baseUrl,
    };
    const all = { arguments: ["connect", client.program, ...args], environment, stdout: output, stderr: output };
    return { exitCode: await trunkline(all), said };
  }

  test("does its task through the gateway, and has its settings back after an undo", { timeout }, async () => {
    expect(await connect("--yes", "--model", run.staged.model)).toMatchObject({ exitCode: 0 });
    const ended = await run.give(task);
    expect(ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(closing) });
    expect(await readFile(join(run.place.project, "greeting.txt"), "utf8")).toBe(greeting.after);
    expect(await connect("--undo")).toMatchObject({ exitCode: 0 });
    expect(await readFile(join(run.place.home, own.file), "utf8")).toBe(own.text);
  });
});
