import { createRequire, findPackageJSON } from "node:module";
import { availableParallelism, constants } from "node:os";
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
  /** Returns the first error in llama.cpp's log since the last call. A failed load gives no other reason. */
  lastComplaint(): Promise<string | undefined>;
  /** Stops listening to llama.cpp's log. Frees no models: the owner of a model frees it. */
  close(): void;
}

export interface EngineOptions {
  /** A folder whose node_modules holds the engine, when the engine is not installed beside Trunkline. */
  readonly dir?: string | undefined;
  readonly gpu?: "auto" | false | undefined;
  /** The number of threads that compute; by default the engine's own choice, at most one a core. */
  readonly threads?: number | undefined;
  readonly log: Log;
}

const engineName = "node-llama-cpp";
export const engineVersion = "3.22.1";
const installCommand = `npm install --no-save ${engineName}@${engineVersion}`;

type Listener = (level: string, message: string) => void;
type SharedEngine = Pick<Engine, "library" | "llama" | "templates"> & { readonly listeners: Set<Listener> };

/** The engines of this process by options. llama.cpp has one log, which a second instance would take from the first. */
const shared = new Map<string, Promise<SharedEngine>>();

/** Loads the engine. Called only when a GGUF file is to be served: the plain install does not include the engine. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { gpu = "auto", threads, log } = options;
  const folder = engineFolder(options.dir);
  const key = JSON.stringify([folder, gpu, threads]);
  const opening = shared.get(key) ?? start({ folder, gpu, threads });
  shared.set(key, opening);
  const { listeners, ...engine } = await opening.catch((error: unknown) => {
    shared.delete(key);
    throw error;
  });
  let complaint: string | undefined;
  const listen: Listener = (level, message) => {
    if (level === "error" || level === "fatal") complaint ??= message.trim();
    log.debug({ engineLevel: level }, `llama.cpp: ${message.trim()}`);
  };
  listeners.add(listen);
  return {
    ...engine,
    async lastComplaint() {
      // llama.cpp's log arrives one turn of the event loop later than its errors.
      await new Promise((resolve) => void setImmediate(resolve));
      const told = complaint;
      complaint = undefined;
      return told;
    },
    close: () => void listeners.delete(listen),
  };
}

async function start(given: {
  readonly folder: string;
  readonly gpu: "auto" | false;
  readonly threads: number | undefined;
}): Promise<SharedEngine> {
  const { folder, gpu, threads } = given;
  const library: Library = await withoutSignals(() => import(pathToFileURL(join(folder, "dist", "index.js")).href));
  const jinja = createRequire(join(folder, "package.json")).resolve("@huggingface/jinja");
  const templates: TemplateLibrary = await import(pathToFileURL(jinja).href);
  const listeners = new Set<Listener>();
  const logger: Listener = (level, message) => listeners.forEach((listen) => listen(level, message));
  // The engine must never build, download or print: a missing binary is reported as a `StartFailure` instead.
  const quiet = { build: "never", skipDownload: true, progressLogs: false, debug: false } as const;
  try {
    const llama = await library.getLlama({ ...quiet, gpu, logLevel: "warn", logger });
    llama.maxThreads = threads ?? usefulThreads(llama);
    return { library, llama, templates, listeners };
  } catch (error) {
    const message = `${engineName} has no llama.cpp that runs on this machine; install it here: ${installCommand}`;
    throw new StartFailure(exitCodes.unavailable, message, { cause: error });
  }
}

/**
 * Loads a library and removes the signal listeners that it added: only this process handles its signals. The library
 * listens for the sake of downloads, which never run here, and sends each signal again. The process would take that
 * for a second signal and exit in the middle of stopping.
 */
async function withoutSignals<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  const before = new Map(signals.map((signal) => [signal, process.listeners(signal)]));
  const loaded = await load();
  for (const signal of signals) {
    const added = process.listeners(signal).filter((listener) => !before.get(signal)?.includes(listener));
    for (const listener of added) process.removeListener(signal, listener);
  }
  return loaded;
}

const signals = Object.keys(constants.signals) as NodeJS.Signals[];

/**
 * Caps the engine's own choice at the number of cores: more threads only wait for each other. The engine itself never
 * chooses fewer than four.
 */
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
