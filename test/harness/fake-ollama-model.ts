import { createHash } from "node:crypto";
import { z } from "zod";
import { wordsIn } from "./asked-chat.ts";

export interface FakeOllamaModel {
  /** As Ollama prints it, with its tag. */
  readonly name: string;
  readonly capabilities?: readonly string[];
  /** What the list says of them, which is less where only a template tells; the same unless told. */
  readonly listedCapabilities?: readonly string[];
  readonly format?: "gguf" | "safetensors";
  /**
   * Who refuses a prompt that is too long: Ollama, in words without numbers, or llama-server below it, whose JSON is
   * passed on as a text. The MLX engine, which runs all safetensors, has words of its own.
   */
  readonly engine?: "rendered" | "native";
  readonly sizeBytes?: number;
  /** The memory that it takes; 4 GB unless told. */
  readonly memoryBytes?: number;
  readonly modifiedAt?: string;
  /** Changes with the model's content; made of the name unless told. */
  readonly digest?: string;
  readonly architecture?: string;
  readonly trainedTokens?: number;
  /** Lines of the Modelfile, such as `num_ctx 8192`. */
  readonly parameters?: string;
  /** The window it is loaded with just now. */
  readonly loadedTokens?: number;
  /** Makes it a cloud stub. */
  readonly remoteHost?: string;
  /** Makes `/api/show` fail, as it does for a damaged model. */
  readonly damaged?: boolean;
}

export function capabilitiesOf(model: FakeOllamaModel): readonly string[] {
  return model.capabilities ?? ["completion"];
}

/** The window that a request is read in: what it is loaded with, or would be. */
export function windowOf({ loadedTokens, trainedTokens = 131_072, format }: FakeOllamaModel): number {
  return format === "safetensors" ? trainedTokens : (loadedTokens ?? Math.min(trainedTokens, windowDefault));
}

/** What Ollama loads a model with on a machine with little memory. */
export const windowDefault = 4_096;

/** One entry of `/api/tags`. Before 0.30 it told nothing of what a model can do, and it still knows less than show. */
export function tagOf(model: FakeOllamaModel, options: { readonly tells: boolean }): object {
  const isGguf = model.format !== "safetensors";
  const lengths = { ...(isGguf && { context_length: model.trainedTokens ?? 131_072 }), embedding_length: 3_072 };
  return {
    name: model.name,
    model: model.name,
    ...(model.remoteHost !== undefined && { remote_model: model.name, remote_host: model.remoteHost }),
    modified_at: modifiedAt(model),
    size: model.sizeBytes ?? 2_019_393_189,
    digest: digestOf(model),
    details: { ...detailsOf(model), ...(options.tells && lengths) },
    ...(options.tells && { capabilities: model.listedCapabilities ?? capabilitiesOf(model) }),
  };
}

/** One entry of `/api/ps`. */
export function loadedOf(model: FakeOllamaModel): object {
  return {
    name: model.name,
    model: model.name,
    size: model.memoryBytes ?? 4_000_000_000,
    digest: digestOf(model),
    details: detailsOf(model),
    expires_at: "2026-11-20T10:05:00Z",
    size_vram: model.memoryBytes ?? 4_000_000_000,
    context_length: model.loadedTokens,
  };
}

export function showOf(model: FakeOllamaModel): object {
  const architecture = model.architecture ?? "llama";
  return {
    license: "a licence",
    modelfile: "# Modelfile",
    parameters: model.parameters,
    template: "{{ .Prompt }}",
    details: detailsOf(model),
    model_info: {
      "general.architecture": architecture,
      [`${architecture}.context_length`]: model.trainedTokens ?? 131_072,
      [`${architecture}.block_count`]: 28,
    },
    tensors: [{ name: "output.weight", type: "Q6_K", shape: [3072, 128_256] }],
    capabilities: capabilitiesOf(model),
    modified_at: modifiedAt(model),
    ...(model.remoteHost !== undefined && { remote_model: model.name, remote_host: model.remoteHost }),
  };
}

function modifiedAt(model: FakeOllamaModel): string {
  return model.modifiedAt ?? "2026-08-01T10:00:00.123456789+02:00";
}

function digestOf(model: FakeOllamaModel): string {
  return model.digest ?? createHash("sha256").update(model.name).digest("hex");
}

function detailsOf(model: FakeOllamaModel): object {
  const family = model.architecture ?? "llama";
  const format = model.remoteHost === undefined ? (model.format ?? "gguf") : "";
  return { parent_model: "", format, family, families: [family], parameter_size: "3.2B", quantization_level: "Q4_K_M" };
}

const asked = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.string(), images: z.array(z.string()).optional() })),
  truncate: z.boolean().optional(),
});
type Message = z.infer<typeof asked>["messages"][number];

/** What Ollama counts an image as. */
const tokensPerImage = 768;

/**
 * The messages that a model gets to read of a chat, or the refusal. Unless it is told not to, Ollama forgets the oldest
 * messages without a word until the rest fits. For these models a word is a token.
 */
export function readInWindow(
  model: FakeOllamaModel,
  body: Readonly<Record<string, unknown>>,
): { readonly read: readonly unknown[] } | { readonly refusal: string } {
  const parsed = asked.safeParse(body);
  if (!parsed.success) return { read: [] };
  const { messages, truncate = true } = parsed.data;
  const window = windowOf(model);
  const tokens = tokensIn(messages);
  if (tokens <= window) return { read: messages };
  if (model.format === "safetensors") return { refusal: tooLongForMlx({ tokens, window }) };
  if (!truncate) return { refusal: tooLong(model, { tokens, window }) };
  const read = [...messages];
  while (tokensIn(read) > window) {
    const oldest = read.findIndex(({ role }, at) => role !== "system" && at < read.length - 1);
    if (oldest < 0) return { refusal: tooLong(model, { tokens, window }) };
    read.splice(oldest, 1);
  }
  return { read };
}

/** Why a prompt is not continued, if it is not. Unless it is told not to, Ollama reads less of one that is too long. */
export function promptRefusal(model: FakeOllamaModel, body: Readonly<Record<string, unknown>>): string | undefined {
  const tokens = wordsIn(String(body["prompt"]));
  const window = windowOf(model);
  if (tokens <= window) return undefined;
  if (model.format === "safetensors") return tooLongForMlx({ tokens, window });
  // Bare prompts are refused by the engine below, whatever the model.
  return body["truncate"] === false ? tooLongBelow({ tokens, window }) : undefined;
}

function tokensIn(messages: readonly Message[]): number {
  const words = messages.reduce((sum, { content }) => sum + wordsIn(content), 0);
  return words + messages.reduce((sum, { images = [] }) => sum + images.length * tokensPerImage, 0);
}

function tooLong(model: FakeOllamaModel, { tokens, window }: { tokens: number; window: number }): string {
  if (model.engine !== "native") {
    return (
      "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the " +
      "context length in settings, or use a model with a longer context length"
    );
  }
  return tooLongBelow({ tokens, window });
}

function tooLongForMlx({ tokens, window }: { tokens: number; window: number }): string {
  return `input length (${tokens} tokens) exceeds the model's maximum context length (${window} tokens)`;
}

function tooLongBelow({ tokens, window }: { tokens: number; window: number }): string {
  const message = `request (${tokens} tokens) exceeds the available context size (${window} tokens), try increasing it`;
  const counts = { n_prompt_tokens: tokens, n_ctx: window };
  return JSON.stringify({ error: { code: 400, message, type: "exceed_context_size_error", ...counts } });
}
