import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, delimiter, dirname, join, sep } from "node:path";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";

/**
 * The program that runs now. A package is copied for the service: npx empties its cache, and a global package changes
 * under a running service. A checkout of the sources stays where it is.
 */
export type RunningProgram =
  | { readonly kind: "source"; readonly node: string; readonly main: string }
  | { readonly kind: "package"; readonly node: string; readonly main: string; readonly folder: string }
  | { readonly kind: "executable"; readonly file: string };

export interface ProgramFacts {
  /** `process.execPath` */
  readonly execPath: string;
  /** `process.argv[1]` */
  readonly script: string | undefined;
  /** True for a single-file executable, which holds Node and Trunkline. */
  readonly isExecutable: boolean;
  /** The variable `PATH` */
  readonly path: string | undefined;
}

export function findProgram({ execPath, script, isExecutable, path }: ProgramFacts): RunningProgram {
  if (isExecutable || script === undefined) return { kind: "executable", file: execPath };
  const main = realpathSync(script);
  const node = lastingNode(execPath, path);
  if (main.endsWith(".ts")) return { kind: "source", node, main };
  return { kind: "package", node, main, folder: packageFolder(main) };
}

const isPassing = /[\\/](?:node_modules|fnm_multishells)[\\/]/;

/**
 * Returns a path of this Node that outlives its upgrades: Homebrew's link and not the folder of one version. Links of
 * packages (npx) and of single terminals (fnm) do not last.
 */
function lastingNode(execPath: string, path = ""): string {
  const own = realpathSync(execPath);
  const links = path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, basename(execPath)));
  return links.find((link) => !isPassing.test(link) && existsSync(link) && realpathSync(link) === own) ?? own;
}

function packageFolder(main: string): string {
  for (let folder = dirname(main); dirname(folder) !== folder; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
  }
  throw new StartFailure(
    exitCodes.failed,
    `There is no package.json above ${main}, so that it cannot be copied: install the package with npm and run its \`trunkline\`.`,
  );
}

/** The program as the service starts it. */
export interface PlacedProgram {
  readonly argv: readonly [string, ...string[]];
  /** The folder that holds the copy. Undefined for a program that was not copied. */
  readonly folder?: string;
}

/** Folders that a system service does not see, or not as others do. */
const privateFolders = /^\/(?:home|root|run\/user|tmp|var\/tmp)\//;

/**
 * Copies the program into a new folder below `programs`. Node is copied too where npx fetched it, and where it lies in a
 * person's home and the service may not look there.
 */
export function placeProgram(
  program: RunningProgram,
  { programs, name, isSealed }: { readonly programs: string; readonly name: string; readonly isSealed: boolean },
): PlacedProgram {
  if (program.kind === "source") {
    if (isSealed && [program.main, program.node].some((file) => privateFolders.test(file))) {
      throw new StartFailure(
        exitCodes.usage,
        `The sources in ${dirname(program.main)} are in a folder that is hidden from a system service: move the checkout to /opt/trunkline, or run this as that person, without sudo.`,
      );
    }
    return { argv: [program.node, program.main] };
  }
  const folder = join(programs, name);
  mkdirSync(folder, { recursive: true });
  if (program.kind === "executable") {
    const file = join(folder, basename(program.file));
    cpSync(program.file, file);
    if (isSealed) letAllRead(folder);
    return { argv: [file], folder };
  }
  cpSync(program.folder, folder, { recursive: true, dereference: true });
  const main = join(folder, program.main.slice(program.folder.length + sep.length));
  const isCopied = isPassing.test(program.node) || (isSealed && privateFolders.test(realpathSync(program.node)));
  const node = isCopied ? join(folder, basename(program.node)) : program.node;
  if (isCopied) cpSync(program.node, node, { dereference: true });
  if (isSealed) letAllRead(folder);
  return { argv: [node, main], folder };
}

/** Lets every user read the copy, whatever the umask of the terminal was. */
function letAllRead(folder: string): void {
  for (const path of [
    dirname(folder),
    folder,
    ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  ]) {
    const { mode } = statSync(path);
    chmodSync(path, mode | ((mode & 0o100) === 0 ? 0o444 : 0o555));
  }
}

/** Removes the copies of earlier installations. Windows keeps a file that still runs; the next time takes it away. */
export function removeOlderPrograms(programs: string, { except }: { readonly except: string | undefined }): void {
  if (!existsSync(programs)) return;
  for (const name of readdirSync(programs)) {
    if (join(programs, name) === except) continue;
    try {
      rmSync(join(programs, name), { recursive: true, force: true });
    } catch {
      // Windows keeps the files of a program that still runs.
    }
  }
}

/** Returns the folder whose node_modules holds the engine of GGUF files for this program, which a copy leaves behind. */
export function engineFolderOf(program: RunningProgram, engine: string): string | undefined {
  if (program.kind === "executable") return undefined;
  const folders = createRequire(program.main).resolve.paths(engine) ?? [];
  const found = folders.find((folder) => existsSync(join(folder, engine, "package.json")));
  return found && dirname(found);
}
