import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { ownCommand, type ProgramStart } from "../../../services/cli/commands/welcome.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";

/** A folder with these files; a value that begins with `->` is a link. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = realpathSync(folderOfTest());
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    if (text.startsWith("->")) symlinkSync(join(folder, text.slice(2)), file);
    else writeFileSync(file, text);
  }
  return folder;
}

const start = (given: Partial<ProgramStart>): ProgramStart => ({
  environment: {},
  script: undefined,
  execPath: "/usr/bin/node",
  isExecutable: false,
  platform: "linux",
  ...given,
});

const inNpx = (
  ...packages: readonly string[]
): { readonly script: string; readonly environment: Record<string, string> } => {
  const folder = folderOf({
    "package.json": JSON.stringify({ dependencies: {}, _npx: { packages } }),
    "node_modules/trunkline/dist/main.js": "",
    "node_modules/.bin/trunkline": "->node_modules/trunkline/dist/main.js",
  });
  const bin = join(folder, "node_modules", ".bin");
  return { script: join(bin, "trunkline"), environment: { npm_command: "exec", PATH: bin } };
};

test("npx is named with the package that it was given, quoted where a shell would read it otherwise", () => {
  expect(ownCommand(start(inNpx("./trunkline-0.2.0.tgz")))).toBe("npx -y ./trunkline-0.2.0.tgz");
  const url = "https://models.example.org/agent.tgz?0.2.0";
  expect(ownCommand(start(inNpx(url)))).toBe(`npx -y '${url}'`);
  expect(ownCommand(start(inNpx("node@24", url)))).toBe(`npx -y -p node@24 -p '${url}' trunkline`);
});

test("a package that is installed globally is named as the shell finds it, and any other by its file", () => {
  const folder = folderOf({ "lib/trunkline/dist/main.js": "", "bin/trunkline": "->lib/trunkline/dist/main.js" });
  const script = join(folder, "bin", "trunkline");
  const environment = { PATH: `/nowhere:${join(folder, "bin")}` };
  expect(ownCommand(start({ script, environment }))).toBe("trunkline");
  expect(ownCommand(start({ script }))).toBe(`node ${join(folder, "lib", "trunkline", "dist", "main.js")}`);
});

test("a checkout is named by the command that npm ci links, or by its file where it is missing", () => {
  const folder = folderOf({ "services/cli/main.ts": "", "node_modules/.bin/trunkline": "" });
  const script = join(folder, "services", "cli", "main.ts");
  const linked = join(folder, "node_modules", ".bin", "trunkline");
  expect(ownCommand(start({ script }))).toBe(relative("", linked));
  rmSync(linked);
  expect(ownCommand(start({ script }))).toBe(`/usr/bin/node ${script}`);
});

test("an executable is named by its file, in the words of the shell", () => {
  const executable = { isExecutable: true, execPath: String.raw`C:\My Programs\trunkline.exe`, platform: "win32" };
  expect(ownCommand(start(executable))).toBe(String.raw`& 'C:\My Programs\trunkline.exe'`);
});
