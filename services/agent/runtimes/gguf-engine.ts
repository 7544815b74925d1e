import { createRequire, findPackageJSON } from "node:module";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Log } from "#shared/process/log.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import type { Library, Llama, TemplateLibrary } from "./gguf-library.ts";

/** llama.cpp inside this process. */
export interface Engine {
  readonly library: Library;
  readonly llama: Llama;
  readonly templates: TemplateLibrary;
  /** What llama.cpp last complained about: a load that fails is told no reason but this. */
  readonly lastComplaint: () => string | undefined;
}

export interface EngineOptions {
  /** A folder in whose node_modules the engine lies, when it is not beside Trunkline. */
  readonly dir?: string | undefined;
  readonly gpu?: "auto" | false | undefined;
  /** How many threads compute; as many as there are cores unless told. */
  readonly threads?: number | undefined;
  readonly log: Log;
}

const engineName = "node-llama-cpp";
export const engineVersion = "3.22.1";
const installCommand = `npm install --no-save ${engineName}@${engineVersion}`;

/** Loads the engine, which is asked for only when a GGUF file is to be served: the plain install goes without it. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { gpu = "auto", threads, log } = options;
  const folder = engineFolder(options.dir);
  const library: Library = await import(pathToFileURL(join(folder, "dist", "index.js")).href);
  const jinja = createRequire(join(folder, "package.json")).resolve("@huggingface/jinja");
  const templates: TemplateLibrary = await import(pathToFileURL(jinja).href);
  let complaint: string | undefined;
  const logger = (level: string, message: string): void => {
    if (level === "error" || level === "fatal") complaint = message.trim();
    log.debug({ level }, `llama.cpp: ${message.trim()}`);
  };
  // It must never build, download or print: what has no binary here is told to a person instead.
  const quiet = { build: "never", skipDownload: true, progressLogs: false, debug: false } as const;
  try {
    const llama = await library.getLlama({ ...quiet, gpu, logLevel: "warn", logger });
    llama.maxThreads = threads ?? usefulThreads(llama);
    return { library, llama, templates, lastComplaint: () => complaint };
  } catch (error) {
    const message = `${engineName} has no llama.cpp that runs on this machine; install it here: ${installCommand}`;
    throw new StartFailure(exitCodes.unavailable, message, { cause: error });
  }
}

/** More threads than cores only wait for each other; the engine's own choice is never fewer than four. */
function usefulThreads(llama: Llama): number {
  return llama.maxThreads === 0 ? 0 : Math.min(llama.maxThreads, availableParallelism());
}

function engineFolder(dir: string | undefined): string {
  const from = dir === undefined ? import.meta.url : pathToFileURL(join(dir, "beside.js"));
  const found = findPackage(from);
  if (found !== undefined) return dirname(found);
  const where = dir === undefined ? "" : ` in ${dir} (TRUNKLINE_ENGINE_DIR)`;
  throw new StartFailure(
    exitCodes.unavailable,
    `Serving a GGUF file needs ${engineName}, which is not installed${where}: ${installCommand}`,
  );
}

function findPackage(from: string | URL): string | undefined {
  try {
    return findPackageJSON(engineName, from);
  } catch {
    return undefined;
  }
}
