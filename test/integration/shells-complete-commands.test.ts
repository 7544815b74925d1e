import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { trunkline } from "../../services/cli/trunkline.ts";
import { findBinary } from "../harness/find-binary.ts";

const run = promisify(execFile);

/** How each shell is asked, without a terminal, for the completions of a line. */
const askers: Readonly<Record<string, (script: string, line: string) => readonly string[]>> = {
  bash: (script, line) => [
    "-c",
    `${script}\nCOMP_WORDS=("\${@:1}"); COMP_CWORD=$(($# - 1)); _trunkline; printf '%s\\n' "\${COMPREPLY[@]}"`,
    "bash",
    ...line.split(" "),
  ],
  // The functions of zsh's completion system, which print in place of drawing a menu.
  zsh: (script, line) => [
    "-f",
    "-c",
    `compdef() {}; _files() {}; _describe() { shift $(($# - 1)); print -l -- "\${(@)\${(@P)1}%%:*}" }
${script}\nwords=("$@"); CURRENT=$#; print -l -- \${(M)\${(f)"$(_trunkline)"}:#\${words[CURRENT]}*}`,
    "zsh",
    ...line.split(" "),
  ],
  fish: (script, line) => ["-N", "-c", `${script}\ncomplete -C '${line}'`],
  pwsh: (script, line) => [
    "-NoProfile",
    "-Command",
    `${script}\n(TabExpansion2 '${line}' ${line.length}).CompletionMatches.CompletionText`,
  ],
};

const expected: readonly (readonly [line: string, completions: readonly string[]])[] = [
  ["trunkline sta", ["status"]],
  ["trunkline keys r", ["revoke", "rotate"]],
  ["trunkline keys rotate 0aB1cD2eF3gH --", ["--grace", "--help", "--json", "--kind", "--quiet"]],
  ["trunkline route --kind ", ["chat", "complete", "embed"]],
  ["trunkline completion ", ["bash", "fish", "powershell", "zsh"]],
  ["trunkline connect co", ["codex", "continue"]],
  // The message of a chat is no command.
  ["trunkline chat llama3.2 keys issue", []],
];

const shells = await Promise.all(
  Object.keys(askers).map(async (shell) => ({ shell, binary: await findBinary(shell) })),
);
for (const { shell, binary } of shells) {
  if (binary === undefined) console.log(`Skipping the completions of ${shell}, which is not on the PATH.`);
}

async function scriptFor(shell: string): Promise<string> {
  let script = "";
  const stdout = { write: (text: string) => (script += text) };
  const args = ["completion", shell === "pwsh" ? "powershell" : shell];
  expect(await trunkline({ arguments: args, environment: {}, stdout, stderr: stdout })).toBe(0);
  return script;
}

describe.each(shells.filter(({ binary }) => binary !== undefined))("$shell completes", ({ shell, binary = "" }) => {
  test.each(expected)("the line %j", async (line, completions) => {
    const { stdout, stderr } = await run(binary, [...(askers[shell]?.(await scriptFor(shell), line) ?? [])]);
    expect(stderr).toBe("");
    // fish tells a description after a tab.
    const names = stdout.split(/\r?\n/).map((each) => each.replace(/\t.*/, ""));
    expect(names.filter(Boolean).toSorted()).toEqual(completions);
  });
});

test("each script names every command and every option", async () => {
  for (const { shell } of shells) {
    const script = await scriptFor(shell);
    for (const name of ["keys", "issue", "completion", "watch", "prompt-tokens"]) expect(script).toContain(name);
  }
});
