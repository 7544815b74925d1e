import { z } from "zod";
import type { Capabilities } from "#shared/model/model.ts";
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
export type OllamaTag = z.infer<typeof ollamaTag>;

/** The fields of `/api/show` that matter here. `/api/show` is authoritative for a model's capabilities. */
export const ollamaShow = z
  .object({
    capabilities: z.array(z.string()).nullish(),
    details: z.object({ format: z.string(), family: z.string() }).partial().nullish(),
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
    trainedTokens: trainedTokens(show.model_info ?? {}),
    configuredTokens: parameter(show.parameters ?? "", "num_ctx"),
  }));
export type OllamaShow = z.output<typeof ollamaShow>;

/** The host of Ollama, with settings that apply to every model. */
export interface OllamaHost {
  readonly platform: string;
  readonly arch: string;
  /** OLLAMA_CONTEXT_LENGTH of the Ollama server, where that is known. */
  readonly contextTokens?: number | undefined;
}

/** Returns the id that clients use: Ollama's name, which always has a tag, without the default tag `:latest`. */
export function modelIdOf(name: string): string {
  return name.endsWith(":latest") ? name.slice(0, -":latest".length) : name;
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
    id: modelIdOf(tag.name),
    createdSeconds: unixSeconds(tag.modified_at),
    ownedBy: tag.name.split("/").at(-2) ?? "library",
    capabilities: show.capabilities,
    contextTokens,
    sizeBytes: tag.size,
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

/** Reads a whole number from the lines of a Modelfile's parameters, such as `num_ctx      32768`. */
function parameter(lines: string, name: string): number | undefined {
  const value = new RegExp(`^${name}\\s+(\\d{1,9})\\s*$`, "m").exec(lines)?.[1];
  return value === undefined || Number(value) < 1 ? undefined : Number(value);
}

function unixSeconds(timestamp: string): number {
  const ms = Date.parse(timestamp.replace(/(\.\d{3})\d+/, "$1"));
  return Number.isFinite(ms) && ms > 0 ? Math.floor(ms / 1_000) : 0;
}
