import { existsSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { z } from "zod";
import type { Environment } from "#shared/process/config.ts";
import { onOneLine } from "./table-text.ts";

/** The form in which a shell quotes a text and runs a command. */
export interface Shell {
  /**
   * Quotes a text. A runtime chooses the names of its models: a name must neither run as a command nor control the
   * terminal that shows it.
   */
  quoted(text: string): string;
  /** Stands before a program whose name is quoted. */
  readonly call: string;
}

export const posixShell: Shell = {
  quoted: (text) => `'${onOneLine(text).replaceAll("'", String.raw`'\''`)}'`,
  call: "",
};

export const powerShell: Shell = {
  // PowerShell takes typographic quotes for quotes too.
  quoted: (text) => `'${onOneLine(text).replaceAll(/['\u2018-\u201b]/g, "$&$&")}'`,
  call: "& ",
};

export function shellOf(platform: string): Shell {
  return platform === "win32" ? powerShell : posixShell;
}

export interface ProgramStart {
  readonly environment: Environment;
  /** `process.argv[1]` */
  readonly script: string | undefined;
  /** `process.execPath` */
  readonly execPath: string;
  /** True for a single-file executable, which holds Node and Trunkline. */
  readonly isExecutable: boolean;
  readonly platform: string;
}

/** Returns the command that starts this program once more from the same folder, as a person types it. */
export function ownCommand({ environment, script, execPath, isExecutable, platform }: ProgramStart): string {
  const shell = shellOf(platform);
  const word = (text: string): string => (/^[\w./:@=+-]+$/.test(text) ? text : shell.quoted(text));
  const program = (text: string): string => (word(text) === text ? text : `${shell.call}${word(text)}`);
  if (isExecutable || script === undefined) return program(execPath);
  const main = realpathSync(script);
  if (main.endsWith(".ts")) {
    return environment["npm_lifecycle_event"] === undefined
      ? `${program(execPath)} ${word(script)}`
      : "npm run -s trunkline --";
  }
  const fetched = environment["npm_command"] === "exec" ? packageOfNpx(main) : undefined;
  if (fetched !== undefined) return `npx -y ${word(fetched)}`;
  return isOnPath(main, environment) ? "trunkline" : `node ${word(main)}`;
}

const npxFolder = z.object({ _npx: z.object({ packages: z.tuple([z.string()]) }) });

/** Returns the package that npx was given, as it notes it beside what it installed. */
function packageOfNpx(main: string): string | undefined {
  try {
    const [folder = ""] = main.split(/[\\/]node_modules[\\/]/);
    return npxFolder.parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")))._npx.packages[0];
  } catch {
    return undefined;
  }
}

/** Returns true if a shell finds this program under its own name. On Windows npm links it by a script beside it. */
function isOnPath(main: string, { PATH = "" }: Environment): boolean {
  const folders = PATH.split(delimiter).filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]/.test(folder));
  return folders.some((folder) =>
    [join(folder, "trunkline"), join(folder, "node_modules", "trunkline", "dist", "main.js")].some(
      (file) => existsSync(file) && realpathSync(file) === main,
    ),
  );
}
