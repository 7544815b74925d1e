import { Fault, originOf } from "#shared/fault/fault.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { ggufChat } from "./gguf-chat.ts";
import { ggufEmbed } from "./gguf-embed.ts";
import { openEngine, type Engine } from "./gguf-engine.ts";
import { partsOf, readGgufFile, type GgufFile } from "./gguf-file.ts";
import { GgufModel } from "./gguf-model.ts";
import { GgufTemplate } from "./gguf-template.ts";
import { ggufText } from "./gguf-text.ts";
import type { DescribedModel, ManageRun, Runtime } from "../runtime.ts";

/** Two slots, so that one long answer does not block all other requests. Each slot takes the memory of a window. */
const slotsDefault = 2;

/** Bounds the window unless `contextTokens` is configured: a window takes its whole memory even when it is empty. */
const windowTokensDefault = 32_768;

/** Bounds how long the start waits for `estimateWindow`. A later estimate or the load still sets the window. */
const estimateMs = 2_000;

export interface LlamaOptions {
  /** Paths of GGUF files; for a model in several parts, the path of any part. */
  readonly files: readonly string[];
  /** A folder whose node_modules holds the engine, when the engine is not installed beside Trunkline. */
  readonly engineDir?: string | undefined;
  /** The number of answers of one model that run at once. */
  readonly slots?: number | undefined;
  /** The largest window of each slot. */
  readonly contextTokens?: number | undefined;
  /** `auto` looks for a graphics card. Without a graphics card the processor computes. */
  readonly gpu?: "auto" | false | undefined;
  readonly threads?: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

interface Served {
  readonly gguf: GgufModel;
  readonly template: GgufTemplate;
  readonly described: Omit<DescribedModel, "contextTokens" | "loaded">;
}

/**
 * Serves GGUF files with llama.cpp inside this process, without a model server. A file that cannot be served fails the
 * start. A single model begins to load at once; several models load when a request needs them.
 */
export async function llamaRuntime(options: LlamaOptions): Promise<Runtime> {
  const { engineDir: dir, gpu, threads, log, slots = slotsDefault } = options;
  const engine = await openEngine({ dir, gpu, threads, log });
  let served: ReadonlyMap<string, Served>;
  try {
    served = await serve(options, engine);
  } catch (error) {
    engine.close();
    throw error;
  }
  const all = [...served.values()];
  const find = (id: string): Served => {
    const found = served.get(id);
    if (found !== undefined) return found;
    throw new Fault("model_not_found", { message: `The model '${id}' does not exist.`, param: "model" });
  };

  const [only] = all;
  if (only !== undefined && all.length === 1) {
    void only.gguf.load().catch((error: unknown) => log.warn({ err: error }, "the model could not be loaded yet"));
  }

  return {
    name: "llama",
    slots,
    slotsPerModel: true,
    async catalogue(signal) {
      signal.throwIfAborted();
      return all.map(({ gguf, described }) => ({
        ...described,
        contextTokens: gguf.windowTokens,
        loaded: gguf.loaded,
      }));
    },
    async chat(run, emit) {
      const { gguf, template } = find(run.model);
      await makeRoom(gguf, { all, log, onLoading: () => run.onProgress("loading") });
      for await (const events of ggufChat({ run, gguf, template, engine })) await emit(events);
    },
    async complete(run, emit) {
      const { gguf } = find(run.model);
      await makeRoom(gguf, { all, log, onLoading: () => run.onProgress("loading") });
      for await (const events of ggufText({ run, gguf, engine })) await emit(events);
    },
    async embed(run) {
      const { gguf } = find(run.model);
      await makeRoom(gguf, { all, log, onLoading: () => run.onProgress("loading") });
      return ggufEmbed(run, gguf);
    },
    manages: {
      load: (run) => load(find(run.model).gguf, { all, log, onLoading: () => {} }, run),
      unload: (run) => unload(find(run.model).gguf, run),
    },
    working: async () => all.reduce((sum, { gguf }) => sum + gguf.users, 0),
    async close() {
      await Promise.all(all.map(({ gguf }) => gguf.close()));
      engine.close();
    },
  };
}

async function serve(options: LlamaOptions, engine: Engine): Promise<ReadonlyMap<string, Served>> {
  const { slots = slotsDefault, contextTokens: windowTokensMax = windowTokensDefault, clock, log } = options;
  const served = new Map<string, Served>();
  for (const path of new Set(options.files.map((file) => partsOf(file)[0] ?? file))) {
    const file = await readGgufFile(path, engine);
    const other = served.get(file.id);
    if (other !== undefined) {
      const both = `${other.gguf.file.path} and ${path}`;
      throw new StartFailure(exitCodes.config, `Two GGUF files would be the model '${file.id}': ${both}`);
    }
    const gguf = new GgufModel({ file, engine, slots, windowTokensMax, log });
    const estimated = gguf
      .estimateWindow()
      .catch((error: unknown) => log.debug({ err: error }, "no window could be estimated"));
    await Promise.race([estimated, sleep(clock, estimateMs)]);
    served.set(file.id, { gguf, ...describe(file, engine) });
  }
  return served;
}

function describe(file: GgufFile, engine: Engine): Pick<Served, "template" | "described"> {
  const template = readTemplate(file, engine);
  const chats = file.purpose === "chat";
  return {
    template,
    described: {
      id: file.id,
      createdSeconds: file.createdSeconds,
      ownedBy: file.ownedBy,
      capabilities: {
        completion: chats,
        vision: false,
        embedding: file.purpose === "embedding",
        tools: chats && template.calls !== undefined,
        thinking: chats && template.thinks,
      },
      sizeBytes: file.sizeBytes,
    },
  };
}

function readTemplate(file: GgufFile, { templates }: Engine): GgufTemplate {
  try {
    return new GgufTemplate(file, templates);
  } catch (error) {
    const message = `The chat template in ${file.path} cannot be read: ${String(error)}`;
    throw new StartFailure(exitCodes.config, message, { cause: error });
  }
}

interface Neighbours {
  readonly all: readonly Served[];
  readonly log: Log;
  readonly onLoading: () => void;
}

/** Loads a model. If the load fails, unloads all idle models to free memory and tries once more. */
async function makeRoom(gguf: GgufModel, { all, log, onLoading }: Neighbours): Promise<void> {
  if (gguf.loaded) return;
  try {
    await gguf.load(onLoading);
  } catch (error) {
    gguf.closing.throwIfAborted();
    const idle = all.filter((other) => other.gguf !== gguf && other.gguf.loaded && other.gguf.users === 0);
    log.warn({ err: error, model: gguf.file.id, idle: idle.length }, "a model could not be loaded");
    for (const other of idle) await other.gguf.unload();
    if (idle.length === 0) throw noRoom(error);
    await gguf.load(onLoading).catch((again: unknown) => {
      throw noRoom(again);
    });
  }
}

async function load(gguf: GgufModel, neighbours: Neighbours, { onProgress }: ManageRun): Promise<void> {
  onProgress({ status: "loading" });
  await makeRoom(gguf, neighbours);
  onProgress({ status: "loaded" });
}

async function unload(gguf: GgufModel, { signal, onProgress }: ManageRun): Promise<void> {
  signal.throwIfAborted();
  if (gguf.users > 0) {
    throw new Fault("server_is_overloaded", { message: "The model is answering; unload it when it has finished." });
  }
  await gguf.unload();
  onProgress({ status: "unloaded" });
}

function noRoom(error: unknown): Fault {
  return new Fault("upstream_error", {
    message: "The model could not be loaded on its machine.",
    internal: originOf(error),
    cause: error,
  });
}
