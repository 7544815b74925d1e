import { readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { bundleConsole } from "../../services/console/bundle-console.ts";

export const projectFolder = join(import.meta.dirname, "../..");

/** The oldest Node that runs the bundle. `services/cli/main.ts` and `engines` in package.json name it too. */
const target = "node22.19";

/** Packages that others look for and do well without. They are not bundled. */
const optional = ["bufferutil", "utf-8-validate", "supports-color"];

/** The files of a package by their paths, and the sources that went into them. */
export interface Bundled {
  readonly files: ReadonlyMap<string, string | Uint8Array>;
  readonly sources: ReadonlySet<string>;
}

/**
 * Bundles each entry, with all that it imports, into one JavaScript file. Threads become files of their own, and other
 * files that the sources name are copied.
 */
export async function bundle(entries: readonly string[]): Promise<Bundled> {
  const files = new Map<string, string | Uint8Array>();
  const sources = new Set<string>();
  const waiting = [...entries];
  for (const entry of waiting) {
    const own = new OwnFiles();
    const chunk = await bundleOne(entry, [own.plugin, apart(entries)]);
    files.set(chunk.fileName, chunk.code);
    for (const source of Object.keys(chunk.modules)) sources.add(source);
    for (const [name, path] of own.pages) {
      const page = await bundleConsole(path);
      files.set(name, page.code);
      for (const source of Object.keys(page.modules)) sources.add(source);
    }
    for (const [name, path] of own.copied) {
      files.set(name, readFileSync(path));
      sources.add(path);
    }
    waiting.push(...own.threads.filter((thread) => !waiting.includes(thread)));
  }
  return { files, sources };
}

/** Bundles the program into one script that needs no other file to start: an executable's main script. */
export async function bundleScript(entry: string): Promise<string> {
  return (await bundleOne(entry, [new OwnFiles().plugin], "cjs")).code;
}

async function bundleOne(
  entry: string,
  plugins: readonly Plugin[],
  format: "esm" | "cjs" = "esm",
): Promise<OutputChunk> {
  const bundler = await rolldown({
    input: entry,
    cwd: projectFolder,
    platform: "node",
    external: optional,
    // The main file of jsonc-parser requires its other files in a way that no bundler sees.
    resolve: { alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" } },
    transform: { target },
    plugins: [...plugins],
    onLog: (_level, log) => {
      throw new Error(`${entry}: ${log.message}`);
    },
  });
  // Names stay as they are, so that a stack trace can be read.
  const { output } = await bundler.generate({ format, codeSplitting: false, comments: false });
  await bundler.close();
  return output[0];
}

/** Leaves the import of one entry by another as it is, so that Node reads the second file only when it gets there. */
function apart(entries: readonly string[]): Plugin {
  return {
    name: "apart",
    resolveId: (source, importer) => {
      if (importer === undefined || !source.startsWith(".")) return null;
      if (!entries.includes(relative(projectFolder, join(dirname(importer), source)))) return null;
      return { id: `./${basename(source, ".ts")}.js`, external: true };
    },
  };
}

const besideSource = /new URL\("(\.\/|\.\.\/\.\.\/(?=console\/))([^"]+)", import\.meta\.url\)/g;
const ofPackage = /import\.meta\.resolve\("([^"]+)"\)/g;

/**
 * Finds the files that the sources name by `new URL("./…", import.meta.url)`, the files of the console, and those by `import.meta.resolve("…")`, and names
 * them where they are in the package. A file of TSX is the script of a page, and becomes one.
 */
class OwnFiles {
  readonly copied = new Map<string, string>();
  readonly pages = new Map<string, string>();
  readonly threads: string[] = [];

  get plugin(): Plugin {
    return {
      name: "own-files",
      transform: (code, id) => {
        if (id.includes("/node_modules/")) return null;
        return code
          .replace(besideSource, (_, way: string, name: string) => this.#beside(join(dirname(id), way, name), name))
          .replace(
            ofPackage,
            (_, name: string) => `${this.#copied(fileURLToPath(import.meta.resolve(name)), name)}.href`,
          );
      },
    };
  }

  #beside(path: string, name: string): string {
    if (name.endsWith(".tsx")) {
      const script = name.replace(/\.tsx$/, ".js");
      this.pages.set(script, path);
      return `new URL("./${script}", import.meta.url)`;
    }
    if (!name.endsWith(".ts")) return this.#copied(path, name);
    this.threads.push(relative(projectFolder, path));
    return `new URL("./${basename(name, ".ts")}.js", import.meta.url)`;
  }

  #copied(path: string, name: string): string {
    this.copied.set(name, path);
    return `new URL("./${name}", import.meta.url)`;
  }
}
