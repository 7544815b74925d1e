import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { trunkline as runCommand } from "../../../services/cli/trunkline.ts";

const onKeys = ["issue", "list", "show", "rotate", "extend", "change", "disable", "enable", "revoke", "log"];
const onModels = ["list", "pull", "rm", "load", "unload"];
const commands = [
  "",
  "up",
  "gateway",
  "agent",
  "chat",
  "completion",
  "usage",
  "status",
  "route",
  "keys",
  "models",
  "nats",
  "nats init",
  ...onKeys.map((command) => `keys ${command}`),
  ...onModels.map((command) => `models ${command}`),
];
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

test.each(commands)("trunkline %s --help tells what it is for and how to call it", async (command) => {
  const { exitCode, stdout, stderr } = await trunkline([...words(command), "--help"]);
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(new RegExp(`^Usage: trunkline ${command}`));
  expect(stdout.split("\n").length).toBeGreaterThan(5);
  expect(stderr).toBe("");
});

test("help lists every command, and each listed one has a help of its own", async () => {
  const { stdout } = await trunkline(["--help"]);
  const listed = [...stdout.matchAll(/^ {2}([a-z]+) .{20}/gm)].map(([, name = ""]) => name);
  expect(listed).toEqual(expect.arrayContaining(commands.filter((command) => /^\w+$/.test(command))));
  for (const name of listed.filter((each) => each !== "help")) {
    expect((await trunkline([name, "--help"])).stdout).toMatch(
      new RegExp(`^Usage: trunkline ${name}.*\n\n\\w[^]*--help`),
    );
  }
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

const wrong = [
  "",
  "sideways",
  "--sideways",
  "up --sideways",
  "up now",
  "gateway --json",
  "agent attic",
  "agent logs --lines none",
  "doctor everything",
  "agent install attic",
  "keys",
  "keys sideways",
  "keys issue",
  "keys issue --name a --ttl soon",
  "keys issue --name a --admin --ttl 91d",
  "keys revoke",
  "keys revoke no-id",
  "keys change 000000000000",
  "completion",
  "completion csh",
  "chat",
  "chat llama3.2 --base-url ftp://127.0.0.1",
  "usage --by hour",
  "status attic",
  "route",
  "route llama3.2 --kind dance",
  "route llama3.2 --prompt-tokens many",
  "models sideways",
  "models pull",
  "models pull llama3.2 --machine No_Where",
  "nats init",
  "nats init one two",
  "models --operations-url ftp://127.0.0.1",
];
test.each(wrong)("wrong usage, trunkline %s, ends with the code for it and says so on stderr only", async (line) => {
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
