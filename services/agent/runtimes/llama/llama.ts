import { Fault, originOf } from "#shared/fault/fault.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { ChatRun, Runtime } from "../runtime.ts";
import { type GgufRequest, ggufEmbed, ggufText, ownSamplingOf } from "./gguf-answer.ts";
import { ggufChat, ggufCount } from "./gguf-chat.ts";
import { type EngineOptions, engineVersion, openEngine } from "./gguf-engine.ts";
import { partsOf } from "../model-digest.ts";
import { readGgufFile } from "./gguf-file.ts";
import { GgufModel } from "./gguf-model.ts";

/** Two slots, so that one long answer does not block all other requests. Each slot takes the memory of a window. */
const slotsDefault = 2;

/** Bounds the window unless `contextTokens` is configured: a window takes its whole memory even when it is empty. */
const windowTokensDefault = 32_768;

export interface LlamaOptions extends EngineOptions {
  /** Paths of GGUF files; for a model in several parts, the path of any part. */
  readonly files: readonly string[];
  /** The number of answers of one model that run at once. */
  readonly slots?: number | undefined;
  /** The largest window of each slot. */
  readonly contextTokens?: number | undefined;
}

/**
 * Serves GGUF files with llama.cpp inside this process, without a model server. A file that cannot be served fails the
 * start. A single model begins to load at once; several models load when a request needs them.
 */
export async function llamaRuntime(options: LlamaOptions): Promise<Runtime> {
  const { log, slots = slotsDefault } = options;
  const engine = await openEngine(options);
  const models = new Map<string, GgufModel>();
  for (const path of new Set(options.files.map((file) => partsOf(file)[0] ?? file))) {
    const file = await readGgufFile(path, engine);
    const other = models.get(file.id)?.file.path;
    if (other !== undefined) {
      const message = `Two GGUF files would be the model '${file.id}': ${other} and ${path}`;
      throw new StartFailure(exitCodes.config, message);
    }
    const windowTokensMax = options.contextTokens ?? windowTokensDefault;
    models.set(file.id, new GgufModel({ file, engine, slots, windowTokensMax, log }));
  }

  const all = [...models.values()];
  const find = (id: string): GgufModel => {
    const found = models.get(id);
    if (found !== undefined) return found;
    throw new Fault("model_not_found", { message: `The model '${id}' does not exist.`, param: "model" });
  };
  const [only] = all;
  if (only !== undefined && all.length === 1) {
    void only.load().catch((error: unknown) => log.warn({ err: error }, "the model could not be loaded yet"));
  }

  /** Loads a model. If the load fails, unloads all idle models to free memory and tries once more. */
  const makeRoom = async (gguf: GgufModel, onLoading?: () => void): Promise<void> => {
    if (gguf.loaded) return;
    try {
      await gguf.load(onLoading);
    } catch (error) {
      gguf.closing.throwIfAborted();
      const idle = all.filter((other) => other !== gguf && other.loaded && other.users === 0);
      log.warn({ err: error, model: gguf.file.id, idle: idle.length }, "a model could not be loaded");
      for (const other of idle) await other.unload();
      if (idle.length === 0) throw noRoom(error);
      await gguf.load(onLoading).catch((again: unknown) => {
        throw noRoom(again);
      });
    }
  };
  const inMemory = async <Run extends Pick<ChatRun, "model" | "onProgress">>(run: Run): Promise<GgufRequest<Run>> => {
    const gguf = find(run.model);
    await makeRoom(gguf, () => run.onProgress("loading"));
    return { run, gguf, engine };
  };

  return {
    name: "llama",
    slots,
    slotsPerModel: true,
    version: engineVersion,
    async catalogue(signal) {
      signal.throwIfAborted();
      return all.map(({ file, windowTokens, loaded }) => {
        const chats = file.purpose === "chat";
        const { temperature, topP: top_p } = ownSamplingOf(file);
        return {
          id: file.id,
          createdSeconds: file.createdSeconds,
          ownedBy: file.ownedBy,
          capabilities: {
            completion: chats,
            vision: false,
            embedding: file.purpose === "embedding",
            tools: chats && file.tools,
            thinking: chats && file.thinks,
          },
          sizeBytes: file.sizeBytes,
          digest: file.digest && `llama:${file.digest}`,
          details: file.details,
          sampling: { temperature, top_p },
          contextTokens: windowTokens,
          loaded,
        };
      });
    },
    chat: async (run, emit) => ggufChat(await inMemory(run), emit),
    count: async (run) => ggufCount(run, find(run.model)),
    complete: async (run, emit) => ggufText(await inMemory(run), emit),
    embed: async (run) => ggufEmbed(await inMemory(run)),
    manages: {
      async load({ model, onProgress }) {
        onProgress({ status: "loading" });
        await makeRoom(find(model));
        onProgress({ status: "loaded" });
      },
      async unload({ model, signal, onProgress }) {
        signal.throwIfAborted();
        if (find(model).users > 0) {
          const message = "The model is answering; unload it when it has finished.";
          throw new Fault("server_is_overloaded", { message });
        }
        await find(model).unload();
        onProgress({ status: "unloaded" });
      },
    },
    working: async () => all.reduce((sum, { users }) => sum + users, 0),
    async close() {
      await Promise.all(all.map((gguf) => gguf.close()));
    },
  };
}

function noRoom(error: unknown): Fault {
  const message = "The model could not be loaded on its machine.";
  return new Fault("upstream_error", { message, internal: originOf(error), cause: error });
}
