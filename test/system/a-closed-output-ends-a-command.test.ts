import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

const main = join(import.meta.dirname, "../../services/cli/main.ts");

test("a command whose output is closed, as by head, ends without an error", async () => {
  const child = spawn(process.execPath, [main, "--help"]);
  child.stdout.destroy();
  const [said, [exitCode]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([exitCode, said]).toEqual([0, ""]);
});
