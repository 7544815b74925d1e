import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const main = join(import.meta.dirname, "../../services/cli/main.ts");
const hook = `import { registerHooks } from "node:module";
registerHooks({ load: (url, context, next) => (process.stderr.write(url + "\\n"), next(url, context)) });`;

/** Returns the files that a command loads, each with its path in this repository. */
async function loadedBy(...args: string[]): Promise<readonly string[]> {
  const importing = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`];
  const { stderr } = await promisify(execFile)(process.execPath, [...importing, main, ...args]);
  const folder = join(import.meta.dirname, "../..");
  return stderr
    .split("\n")
    .flatMap((url) => (url.includes(folder) ? [url.slice(url.indexOf(folder) + folder.length + 1)] : []));
}

const filesOfCommands = /^services\/cli\/(?!terminal\/)\w+\/|^services\/(?!cli)|^shared\/(?!process\/)/;

test.each([
  ["the program's help", ["--help"], []],
  ["TAB behind the program's name", ["completion", "bash", "=mo"], ["services/cli/commands/completion.ts"]],
])("%s loads no other command, no zod and no pino", async (_, args, expected) => {
  const loaded = await loadedBy(...args);
  expect(loaded).toContain("services/cli/listed-commands.ts");
  expect(loaded.filter((file) => filesOfCommands.test(file))).toEqual(expected);
  expect(loaded.filter((file) => /^node_modules\/(?!commander\/)/.test(file))).toEqual([]);
});

test("a command loads neither another command, nor a store that it does not open, nor the log", async () => {
  const loaded = await loadedBy("models", "--help");
  expect(loaded.filter((file) => /^services\/cli\/(?:commands|connect|doctor)\/(?!models)/.test(file))).toEqual([]);
  expect(loaded.filter((file) => /^shared\/store\/(?!key-store-settings)|\/(?:pino|ioredis)\//.test(file))).toEqual([]);
});
