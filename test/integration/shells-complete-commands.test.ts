import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { findBinary } from "../harness/find-binary.ts";
import { serverOfTest } from "../harness/server-of-test.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";
import { modelOf } from "../unit/cli/connect/model-of.ts";

const run = promisify(execFile);

const program = `${process.execPath} ${join(import.meta.dirname, "../../services/cli/main.ts")}`;

/** How each shell is asked, without a terminal, for the completions of a line. */
const askers: Readonly<Record<string, (script: string, line: string) => readonly string[]>> = {
  bash: (script, line) => [
    "-c",
    `trunkline() { ${program} "$@"; }
${script}\nCOMP_LINE="$1"; COMP_POINT=\${#1}; _trunkline; printf '%s\\n' "\${COMPREPLY[@]}"`,
    "bash",
    line,
  ],
  // The functions of zsh's completion system, which print in place of drawing a menu.
  zsh: (script, line) => [
    "-f",
    "-c",
    `trunkline() { ${program} "$@" }
compdef() {}; _files() {}; _describe() { print -l -- "\${(@)\${(@P)2}//\\\\:/=}" }
${script}\nwords=("$@"); CURRENT=$#; print -l -- \${\${\${(f)"$(_trunkline)"}%%:*}//=/:}`,
    "zsh",
    ...line.split(" "),
  ],
  fish: (script, line) => [
    "-N",
    "-c",
    `function trunkline; ${program} $argv; end\n${script}\nfunction __fish_complete_path; end\ncomplete -C '${line}'`,
  ],
  pwsh: (script, line) => [
    "-NoProfile",
    "-Command",
    `function trunkline { ${program} @args }
${script}\n(TabExpansion2 '${line}' ${line.length}).CompletionMatches.CompletionText`,
  ],
};

/** Lines with their completions: of words behind the last colon where bash replaces only those. */
const expected: readonly (readonly [line: string, completions: readonly string[]])[] = [
  ["trunkline sta", ["status"]],
  ["trunkline keys r", ["revoke", "rotate"]],
  ["trunkline keys rotate 0aB1cD2eF3gH --", ["--grace", "--help", "--json", "--kind", "--quiet"]],
  [
    "trunkline route --kind ",
    ["chat", "complete", "embed", "image", "moderation", "rerank", "speech", "tokenize", "transcription"],
  ],
  ["trunkline completion ", ["bash", "fish", "powershell", "zsh"]],
  ["trunkline connect co", ["codex", "continue"]],
  // The message of a chat is no command.
  ["trunkline chat llama3.2 keys issue", []],
];

const models = ["scripted", "scripted:embed", "scripted:mlx", "scripted:plain", "scripted:vision"];
const ofModels: typeof expected = [
  ["trunkline chat ", models],
  ["trunkline chat --system brief scripted:p", ["scripted:plain"]],
  ["trunkline connect claude --model scripted:v", ["scripted:vision"]],
  ["trunkline route scripted:m", ["scripted:mlx"]],
  ["trunkline routes set claude-sonnet-4 scripted:e", ["scripted:embed"]],
  ["trunkline routes set gpt-4o other --then scripted:e", ["scripted:embed"]],
  ["trunkline models load --machine attic scripted:v", ["scripted:vision"]],
];

let up: UpProcess;
beforeAll(async () => void (up = await startUp()));
afterAll(() => up[Symbol.asyncDispose]());

const shells = await Promise.all(
  Object.keys(askers).map(async (shell) => ({ shell, binary: await findBinary(shell) })),
);
for (const { shell, binary } of shells) {
  if (binary === undefined) console.log(`Skipping the completions of ${shell}, which is not on the PATH.`);
}

async function scriptFor(shell: string): Promise<string> {
  const { exitCode, out } = await trunklineHere(["completion", shell === "pwsh" ? "powershell" : shell], {});
  expect(exitCode).toBe(0);
  return out;
}

async function completionsOf(
  line: string,
  { shell, binary, stateDir }: { readonly shell: string; readonly binary: string; readonly stateDir: string },
): Promise<readonly string[]> {
  const env = { ...process.env, TRUNKLINE_STATE_DIR: stateDir };
  const { stdout, stderr } = await run(binary, [...(askers[shell]?.(await scriptFor(shell), line) ?? [])], { env });
  expect(stderr).toBe("");
  // fish tells a description after a tab.
  const names = stdout.split(/\r?\n/).map((each) => each.replace(/\t.*/, ""));
  return names.filter(Boolean).toSorted();
}

describe.each(shells.filter(({ binary }) => binary !== undefined))("$shell completes", ({ shell, binary = "" }) => {
  test.each(expected)(`${shell} completes the line %j`, async (line, completions) => {
    expect(await completionsOf(line, { shell, binary, stateDir: "/nowhere" })).toEqual(completions);
  });

  test.each(ofModels)(`${shell} completes the line %j with models of the live site`, async (line, completions) => {
    // A busy host may be too slow for one TAB.
    const asTyped = async () => {
      const names = await completionsOf(line, { shell, binary, stateDir: up.stateDir });
      return names.length > 0 && names;
    };
    const names = await until(asTyped, { what: "completions", timeoutMs: 15_000 });
    const begun = shell === "bash" ? /^.*(?=:)/.exec(line.split(" ").at(-1) ?? "")?.[0].length : undefined;
    expect(names).toEqual(begun === undefined ? completions : completions.map((name) => name.slice(begun + 1)));
  });
});

const complete = (...words: readonly string[]) =>
  trunklineHere(["completion", "bash", ...words], { TRUNKLINE_STATE_DIR: up.stateDir });

test("a program that starts within a fraction of its time completes models", async () => {
  vi.spyOn(performance, "now").mockReturnValue(0.3);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await complete("=scripted:p", "chat")).toMatchObject({ exitCode: 0, out: "scripted:plain\n" });
});

test("a model is not completed, and no error shows, while the site is frozen", async () => {
  await up.freeze();
  try {
    expect(await complete("=", "chat")).toEqual({ exitCode: 0, out: "", err: "" });
  } finally {
    await up.thaw();
  }
});

test("names of models that a shell could take for commands are not completed", async () => {
  const data = ["good:1", "$(touch it)", "`id`", "a b", "-x"].map((id) => modelOf(id));
  const url = await serverOfTest((_, response) => void response.end(JSON.stringify({ object: "list", data })));
  expect((await complete("=", "chat", "--base-url", url)).out).toBe("good:1\n");
});
