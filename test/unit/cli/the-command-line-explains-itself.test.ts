import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { trunkline as runCommand } from "../../../services/cli/trunkline.ts";

/** Runs a command in this process. Help and usage errors go to the streams of the process. */
async function trunkline(args: readonly string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  for (const [name, stream] of Object.entries({ stdout, stderr }) as ["stdout" | "stderr", PassThrough][]) {
    const spy = vi.spyOn(process[name], "write").mockImplementation((written) => stream.write(written));
    onTestFinished(() => spy.mockRestore());
  }
  const exitCode = await runCommand({ arguments: args, environment: {}, stdout, stderr });
  stdout.end();
  stderr.end();
  return { exitCode, stdout: await text(stdout), stderr: await text(stderr) };
}

const words = (command: string): string[] => command.split(" ").filter((word) => word !== "");

/** The commands that a help lists below the heading of a group. */
function listedIn(help: string): string[] {
  const groups = help.split("\n\n").filter((each) => /^(Commands|Run|Use|Manage|Watch|More):\n/.test(each));
  return groups.flatMap((each) => [...each.matchAll(/^ {2}([a-z]+) /gm)].map(([, name = ""]) => name));
}

test("help tells of every command, at any depth, what it is for and how to call it", async () => {
  const commands = [""];
  for (const command of commands) {
    const { exitCode, stdout, stderr } = await trunkline([...words(command), "--help"]);
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(new RegExp(`^Usage: trunkline ${command}.*\n\n\\w[^]*--help`));
    expect(stdout.split("\n").length).toBeGreaterThan(5);
    const below = listedIn(stdout).filter((name) => name !== "help");
    commands.push(...below.map((name) => `${command} ${name}`.trim()));
  }
  const some = ["up", "status", "completion", "keys issue", "keys log", "models pull", "nats init", "agent install"];
  expect(commands).toEqual(expect.arrayContaining(some));
});

test("help is no wider than the terminal, but for examples", async () => {
  let shown = "";
  const stdout = { write: (written: string) => (shown += written), isTTY: true, columns: 50 };
  await runCommand({ arguments: ["status", "--help"], environment: {}, stdout, stderr: stdout });
  const paragraphs = shown.split("\n").filter((line) => !line.startsWith(" "));
  expect(Math.max(...paragraphs.map(({ length }) => length))).toBeLessThanOrEqual(50);
  expect(shown.replaceAll("\n", " ")).toContain("how long ago it heard the machine.");
  expect(shown).toContain("\n  trunkline status --watch\n");
});

test.each([
  "",
  "sideways",
  "--sideways",
  "up --sideways",
  "up now",
  "agent logs --lines none",
  "doctor everything",
  "keys",
  "keys sideways",
  "keys issue",
  "keys issue --name a --ttl soon",
  "keys revoke no-id",
  "keys change 000000000000",
  "completion csh",
  "chat llama3.2 --base-url ftp://127.0.0.1",
  "route llama3.2 --kind dance",
  "models pull llama3.2 --machine No_Where",
  "nats init one two",
])("wrong usage, trunkline %s, ends with the code for it and says so on stderr only", async (line) => {
  const { exitCode, stdout, stderr } = await trunkline(words(line));
  expect(exitCode).toBe(exitCodes.usage);
  expect(stdout).toBe("");
  expect(stderr).not.toBe("");
  expect(stderr).not.toMatch(/^\s+at /m);
});

test("the join line of an installation is read as that of the installation", async () => {
  const { exitCode, stderr } = await trunkline(["agent", "install", "--join", "nonsense"]);
  expect(stderr).toMatch(/^trunkline: This is no join line/);
  expect(exitCode).toBe(exitCodes.usage);
});
