import { z } from "zod";
import { model as modelSchema, type Capabilities, type Model } from "#shared/model/model.ts";

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

/** What matters of `/api/show`, which is the authority on what a model can do. */
export const ollamaShow = z
  .object({
    capabilities: z.array(z.string()).nullish(),
    details: z.object({ format: z.string() }).partial().nullish(),
    model_info: z.record(z.string(), z.unknown()).nullish(),
    parameters: z.string().nullish(),
    remote_model: z.string().optional(),
    remote_host: z.string().optional(),
  })
  .transform((show) => ({
    capabilities: capabilitiesOf(show.capabilities ?? []),
    /** Models in this format run on Ollama's MLX engine, all others on llama.cpp. */
    isMlx: show.details?.format === "safetensors",
    isRemote: Boolean(show.remote_model ?? show.remote_host),
    trainedTokens: trainedTokens(show.model_info ?? {}),
    configuredTokens: parameter(show.parameters ?? "", "num_ctx"),
  }));
export type OllamaShow = z.output<typeof ollamaShow>;

/** What the machine's Ollama does for every model. */
export interface OllamaHost {
  readonly platform: string;
  readonly arch: string;
  /** OLLAMA_CONTEXT_LENGTH as the Ollama server has it, where that is known. */
  readonly contextTokens?: number | undefined;
}

/** What Ollama gives a model on the smallest graphics cards. It tells its choice to nobody, so nothing larger is promised. */
const contextTokensDefault = 4_096;
const visionContextTokensMin = 2_048;

/** The id that clients use: Ollama's name, which always carries a tag, without the one that it takes for granted. */
export function modelIdOf(name: string): string {
  return name.endsWith(":latest") ? name.slice(0, -":latest".length) : name;
}

/** A model as the contract describes it, or nothing when it is not one that this machine can serve. */
export function describeModel(facts: {
  tag: OllamaTag;
  show: OllamaShow;
  /** The window of a model that is loaded now. */
  loadedTokens: number | undefined;
  host: OllamaHost;
}): Model | undefined {
  const { tag, show, loadedTokens, host } = facts;
  if (show.isRemote || !Object.values(show.capabilities).includes(true)) return undefined;
  const onAppleMlx = show.isMlx && host.platform === "darwin" && host.arch === "arm64";
  const described = modelSchema.safeParse({
    id: modelIdOf(tag.name),
    object: "model",
    created: unixSeconds(tag.modified_at),
    owned_by: tag.name.split("/").at(-2) ?? "library",
    capabilities: show.capabilities,
    context_window: loadedTokens || expectedTokens(show, host),
    size_mb: Math.round(tag.size / 1_000_000),
    runtime_profile: onAppleMlx ? "apple-mlx" : "auto",
    ...(onAppleMlx && { apple_mlx: true }),
  });
  return described.success ? described.data : undefined;
}

/** The window a model would be given if it were loaded now. The MLX engine sets none aside and uses all there is. */
function expectedTokens(show: OllamaShow, host: OllamaHost): number {
  const trained = show.trainedTokens ?? Infinity;
  const unset = show.isMlx ? (show.trainedTokens ?? contextTokensDefault) : contextTokensDefault;
  const configured = show.configuredTokens ?? host.contextTokens ?? unset;
  const least = show.capabilities.vision ? visionContextTokensMin : 1;
  return Math.min(trained, Math.max(configured, least));
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

/** The key is named after the architecture, whose own name may hold dots. */
function trainedTokens(info: Readonly<Record<string, unknown>>): number | undefined {
  const keys = Object.keys(info).filter((key) => key.endsWith(".context_length"));
  const own = `${String(info["general.architecture"])}.context_length`;
  const value = info[own] ?? (keys.length === 1 ? info[keys[0] ?? ""] : undefined);
  return typeof value === "number" && value >= 1 ? Math.floor(value) : undefined;
}

/** A whole number from the lines of a Modelfile's parameters, `num_ctx      32768`. */
function parameter(lines: string, name: string): number | undefined {
  const value = new RegExp(`^${name}\\s+(\\d{1,9})\\s*$`, "m").exec(lines)?.[1];
  return value === undefined || Number(value) < 1 ? undefined : Number(value);
}

function unixSeconds(timestamp: string): number {
  const ms = Date.parse(timestamp.replace(/(\.\d{3})\d+/, "$1"));
  return Number.isFinite(ms) && ms > 0 ? Math.floor(ms / 1_000) : 0;
}
