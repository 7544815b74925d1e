import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { aliasedId, type Capabilities, modelDetails, modelsPerMachineMax } from "#shared/protocol/model.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";

/** One entry of `/api/tags`. */
export const ollamaTag = z.object({
  name: z.string(),
  digest: z.string(),
  size: z.number(),
  modified_at: z.string(),
  remote_model: z.string().optional(),
  remote_host: z.string().optional(),
});
type OllamaTag = z.infer<typeof ollamaTag>;

const versionAnswer = z.object({ version: z.string() });
const tagList = z.object({ models: z.array(ollamaTag).nullish() });
const loadedList = z.object({
  models: z
    .array(z.object({ name: z.string(), context_length: z.number().nullish(), size: z.number().nullish() }))
    .nullish(),
});

/** The number of models that are described at once. */
const showsAtOnce = 8;

/** A model that can run a chat, by its name in Ollama. `loaded` is true if the last list had it in memory. */
export interface OllamaEntry {
  readonly name: string;
  readonly show: OllamaShow;
  readonly loaded: boolean;
}

/**
 * The models of one Ollama. A model's capabilities are requested once for each digest, so another read of the list
 * costs two small requests. Only this class maps a client's id back to Ollama's name.
 */
export class OllamaCatalogue {
  readonly #connection: RuntimeConnection;
  readonly #host: OllamaHost;
  version: string | undefined;
  #windows = new OllamaWindows();
  #showByDigest: ReadonlyMap<string, OllamaShow> = new Map();
  #entryById: ReadonlyMap<string, OllamaEntry> = new Map();

  constructor(options: { connection: RuntimeConnection; host: OllamaHost }) {
    this.#connection = options.connection;
    this.#host = options.host;
  }

  async read(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    const [tags, loaded, version] = await Promise.all([
      this.#connection.ask(tagList, { path: "/api/tags", signal }),
      this.#connection.ask(loadedList, { path: "/api/ps", signal }),
      this.#connection.ask(versionAnswer, { path: "/api/version", signal }).catch(() => undefined),
    ]).catch((error: unknown) => {
      if (Fault.from(error).code === "runtime_offline") {
        // The Ollama that comes back may have another version and other settings.
        this.#showByDigest = new Map();
        this.#windows = new OllamaWindows();
      }
      throw error;
    });
    const local = (tags.models ?? [])
      .filter((tag) => !tag.remote_model && !tag.remote_host)
      .slice(0, modelsPerMachineMax);
    const shows = await this.#showAll(local, signal);
    const loadedByName = new Map((loaded.models ?? []).map((each) => [each.name, each]));

    const shown = local.flatMap((tag) => {
      const show = shows.get(tag.digest);
      return show === undefined ? [] : [{ tag, show }];
    });
    for (const { tag, show } of shown) {
      this.#windows.saw(tag.digest, show, loadedByName.get(tag.name)?.context_length ?? undefined);
    }

    const models: DescribedModel[] = [];
    const entries = new Map<string, OllamaEntry>();
    for (const { tag, show } of shown) {
      const inMemory = loadedByName.get(tag.name);
      const isLoaded = inMemory !== undefined;
      const contextTokens = this.#windows.tokensOf(tag.digest, show);
      const model = describeModel({ tag, show, contextTokens, isLoaded, host: this.#host });
      if (model === undefined) continue;
      models.push({ ...model, memoryBytes: inMemory?.size ?? undefined });
      entries.set(model.id, { name: tag.name, show, loaded: isLoaded });
    }
    this.#entryById = entries;
    this.version = version?.version;
    return models;
  }

  /** Returns the model for a client's id. A model that the last list did not have is requested from Ollama. */
  async find(id: string, signal: AbortSignal): Promise<OllamaEntry> {
    const known = this.#entryById.get(aliasedId(id));
    if (known !== undefined) return known;
    const show = await this.#show(id, signal);
    if (!show.isRemote) return { name: id, show, loaded: false };
    throw new Fault("model_not_found", { message: "The model does not run on this machine.", param: "model" });
  }

  async #showAll(tags: readonly OllamaTag[], signal: AbortSignal): Promise<ReadonlyMap<string, OllamaShow>> {
    const shows = new Map<string, OllamaShow>();
    const missing: OllamaTag[] = [];
    for (const tag of tags) {
      const known = this.#showByDigest.get(tag.digest);
      if (known === undefined) missing.push(tag);
      else shows.set(tag.digest, known);
    }
    // Keeps the descriptions even when the signal ends the rest, so that the next read gets further.
    this.#showByDigest = shows;
    for (let from = 0; from < missing.length; from += showsAtOnce) {
      await Promise.all(
        missing.slice(from, from + showsAtOnce).map(async (tag) => {
          try {
            shows.set(tag.digest, await this.#show(tag.name, signal));
          } catch {
            // Ollama cannot describe the model, or it was just removed. The other models stay visible.
            signal.throwIfAborted();
          }
        }),
      );
    }
    return shows;
  }

  #show(name: string, signal: AbortSignal): Promise<OllamaShow> {
    return this.#connection.ask(ollamaShow, { path: "/api/show", body: { model: name }, signal });
  }
}

/** The fields of `/api/show` that matter here. `/api/show` is authoritative for a model's capabilities. */
export const ollamaShow = z
  .object({
    capabilities: z.array(z.string()).nullish(),
    details: modelDetails.extend({ format: z.string().optional() }).nullish(),
    model_info: z.record(z.string(), z.unknown()).nullish(),
    parameters: z.string().nullish(),
    remote_model: z.string().optional(),
    remote_host: z.string().optional(),
  })
  .transform((show) => ({
    capabilities: capabilitiesOf(show.capabilities ?? []),
    /** True if the model can fill in text before a suffix. */
    inserts: (show.capabilities ?? []).includes("insert"),
    /** True for a model that runs on Ollama's MLX engine. Models in other formats run on llama.cpp. */
    isMlx: show.details?.format === "safetensors",
    /** True for gpt-oss, which thinks at three efforts and cannot disable thinking. */
    isGptOss: /^gpt-?oss/.test(show.details?.family ?? ""),
    isRemote: Boolean(show.remote_model ?? show.remote_host),
    details: show.details ? modelDetails.parse(show.details) : undefined,
    trainedTokens: trainedTokens(show.model_info ?? {}),
    configuredTokens: parameter(show.parameters ?? "", "num_ctx") || undefined,
    sampling: {
      temperature: parameter(show.parameters ?? "", "temperature"),
      top_p: parameter(show.parameters ?? "", "top_p"),
    },
  }));
export type OllamaShow = z.output<typeof ollamaShow>;

export interface OllamaHost {
  readonly platform: string;
  readonly arch: string;
}

/**
 * Describes a model. Returns undefined for a model that does not run on this machine: some entries only stand for cloud
 * models.
 */
export function describeModel(facts: {
  tag: OllamaTag;
  show: OllamaShow;
  /** The window of the model now, or the one it would get if it were loaded now. */
  contextTokens: number;
  isLoaded: boolean;
  host: OllamaHost;
}): DescribedModel | undefined {
  const { tag, show, contextTokens, isLoaded, host } = facts;
  if (show.isRemote) return undefined;
  return {
    id: aliasedId(tag.name),
    createdSeconds: unixSeconds(tag.modified_at),
    ownedBy: tag.name.split("/").at(-2) ?? "library",
    capabilities: show.capabilities,
    contextTokens,
    sizeBytes: tag.size,
    digest: `ollama:${tag.digest}`,
    details: show.details,
    sampling: show.sampling,
    onAppleMlx: show.isMlx && host.platform === "darwin" && host.arch === "arm64",
    loaded: isLoaded,
  };
}

function capabilitiesOf(names: readonly string[]): Capabilities {
  return {
    completion: names.includes("completion"),
    vision: names.includes("vision"),
    embedding: names.includes("embedding"),
    tools: names.includes("tools"),
    thinking: names.includes("thinking"),
  };
}

/** Reads the trained window. Its key begins with the architecture, whose name may hold dots. */
function trainedTokens(info: Readonly<Record<string, unknown>>): number | undefined {
  const keys = Object.keys(info).filter((key) => key.endsWith(".context_length"));
  const own = `${String(info["general.architecture"])}.context_length`;
  const value = info[own] ?? (keys.length === 1 ? info[keys[0] ?? ""] : undefined);
  return typeof value === "number" && value >= 1 ? Math.floor(value) : undefined;
}

/** Reads a number from the lines of a Modelfile's parameters, such as `num_ctx      32768`. */
function parameter(lines: string, name: string): number | undefined {
  const value = new RegExp(`^${name}\\s+(\\d{1,9}(?:\\.\\d{1,9})?)\\s*$`, "m").exec(lines)?.[1];
  return value === undefined ? undefined : Number(value);
}

function unixSeconds(timestamp: string): number {
  const ms = Date.parse(timestamp.replace(/(\.\d{3})\d+/, "$1"));
  return Number.isFinite(ms) && ms > 0 ? Math.floor(ms / 1_000) : 0;
}

/**
 * The window that Ollama gives a model on the smallest graphics cards. No larger window is promised before one is seen.
 */
const contextTokensDefault = 4_096;
const visionContextTokensMin = 2_048;

/**
 * The context windows that an Ollama gives its models. Ollama reports the window of a loaded model only. Its default
 * depends on its settings and on the graphics cards, and it does not report it. Both are learnt from loaded models.
 */
export class OllamaWindows {
  readonly #seenByDigest = new Map<string, number>();
  #seenDefault: number | undefined;

  /** Records a model of the list, and its window if it is loaded. */
  saw(digest: string, show: OllamaShow, loadedTokens: number | undefined): void {
    if (!loadedTokens) return;
    this.#seenByDigest.set(digest, loadedTokens);
    // A model that sets no window and got less than its trained one shows Ollama's default for all models.
    const isCut = loadedTokens < (show.trainedTokens ?? 0);
    if (isCut && show.configuredTokens === undefined && !show.isMlx) this.#seenDefault = loadedTokens;
  }

  /** Returns the window of the model now, or the one it would get if it were loaded now. */
  tokensOf(digest: string, show: OllamaShow): number {
    const seen = this.#seenByDigest.get(digest);
    if (seen !== undefined) return seen;
    const trained = show.trainedTokens ?? Infinity;
    // The MLX engine reserves no window and uses the whole trained one.
    const unset = (show.isMlx ? show.trainedTokens : this.#seenDefault) ?? contextTokensDefault;
    const least = show.capabilities.vision ? visionContextTokensMin : 1;
    return Math.min(trained, Math.max(show.configuredTokens ?? unset, least));
  }
}
