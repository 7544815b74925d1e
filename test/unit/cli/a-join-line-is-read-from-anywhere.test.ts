import { type StartOptions, readJoinLine } from "../../../services/cli/commands/start-options.ts";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { joinLineText } from "#shared/protocol/pairing.ts";
import { trunkline } from "../../../services/cli/trunkline.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";

const origin = "https://models.example.org";
const secret = randomBytes(16);
const line = joinLineText({ origin, id: "k3v9Q2xLmT0a", secret });
const parsed = { origin, id: "k3v9Q2xLmT0a", secret };

async function read(given: StartOptions, { typed = "", isTTY = false } = {}) {
  const stdin = Object.assign(new PassThrough(), { isTTY });
  // Left open: a person who pastes a line does not end the input.
  stdin.write(typed);
  let said = "";
  const joinLine = await readJoinLine(given, { stdin, stderr: { write: (text) => (said += text) } });
  return { joinLine, said };
}

test("a join line comes from the argument, a file, or standard input", async () => {
  const folder = folderOfTest();
  const joinFile = join(folder, "line");
  writeFileSync(joinFile, `${line}\n`);
  expect(await read({ join: line })).toEqual({ joinLine: parsed, said: "" });
  expect(await read({ joinFile })).toEqual({ joinLine: parsed, said: "" });
  expect(await read({ join: "-" }, { typed: `\n  ${line}\r\nmore` })).toEqual({ joinLine: parsed, said: "" });
  expect(await read({ join: "-" }, { typed: `"${line}" \r\n` })).toEqual({ joinLine: parsed, said: "" });
  expect(await read({})).toEqual({ joinLine: undefined, said: "" });
});

test("a person at a terminal is asked for the line", async () => {
  const { joinLine, said } = await read({ join: "-" }, { typed: `${line}\n`, isTTY: true });
  expect([joinLine, said]).toEqual([parsed, "Paste the join line and press Enter: "]);
});

test.each([
  ["half a line", { join: line.slice(0, -1) }, /no join line.*whole line/],
  ["clear text", { join: line.replace("https:", "http:") }, /http:\/\/ works on this host only.*--public/],
  ["a file that is not there", { joinFile: "/nowhere/line" }, /--join-file.*\/nowhere\/line/],
  ["--replace alone", { replace: true }, /--replace goes with --join/],
] as const)("%s is a usage error that repeats nothing of the line", async (_, given, told) => {
  const failure = await read(given).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ exitCode: exitCodes.usage, message: expect.stringMatching(told) });
  expect(String(failure)).not.toContain(line.slice(-20, -4));
});

test("a join line in a wrong place is not repeated", async () => {
  for (const args of [
    [line],
    ["agent", line],
    ["agent", "--join", "-", line],
    ["agent", "--join-file", line],
    [`--${line}`],
  ]) {
    let said = "";
    const output = { write: (text: string) => (said += text) };
    expect(await trunkline({ arguments: args, environment: {}, stdout: output, stderr: output })).toBe(exitCodes.usage);
    expect(said).not.toContain(line.slice(-22));
  }
});
