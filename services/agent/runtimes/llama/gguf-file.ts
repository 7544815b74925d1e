import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import type { Engine } from "./gguf-engine.ts";
import type { FileInfo } from "./gguf-library.ts";

/** A model as its GGUF file describes it, in one part or several. */
export interface GgufFile {
  readonly path: string;
  readonly id: string;
  readonly createdSeconds: number;
  readonly sizeBytes: number;
  readonly ownedBy: string;
  /** The purpose of the model: `chat` answers, `embedding` embeds, `other` does neither (a model that ranks). */
  readonly purpose: "chat" | "embedding" | "other";
  readonly trainedTokens: number;
  /** The number of different tokens in the vocabulary. */
  readonly tokenCount: number;
  readonly template: string | undefined;
  readonly beginText: string;
  readonly endText: string;
  /** The texts of the control tokens, which steer the model. Text from a client must never become one of them. */
  readonly controlTexts: readonly string[];
  /** The sampling values that the model's makers recommend. */
  readonly sampling: { readonly temperature?: number; readonly topP?: number; readonly topK?: number };
  readonly info: FileInfo;
}

const partName = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
const blobName = /^sha256[-:][0-9a-f]{64}$/;

const trainedTokensDefault = 4_096;
const ownerCharactersMax = 100;
const controlToken = 3;
const pooling = { none: 0, rank: 4 } as const;

/** Reads a model's metadata and checks that its file is whole. A defect fails the start with a one-line message. */
export async function readGgufFile(path: string, engine: Engine): Promise<GgufFile> {
  const parts = partsOf(path);
  const [first = path] = parts;
  const stats = await Promise.all(parts.map(statOf));
  const info = await readInfo(first, engine);
  await checkWhole(first, engine);
  const { general, tokenizer } = info.metadata;
  const tokens = textsOf(tokenizer?.ggml?.["tokens"]);
  return {
    path: first,
    id: idOf(first, general["name"]),
    createdSeconds: Math.floor(Math.max(...stats.map(({ mtimeMs }) => mtimeMs)) / 1_000),
    sizeBytes: stats.reduce((sum, { size }) => sum + size, 0),
    ownedBy: textOf(general["organization"])?.slice(0, ownerCharactersMax) ?? "gguf",
    purpose: purposeOf(info),
    trainedTokens: positive(info.architectureMetadata["context_length"]) ?? trainedTokensDefault,
    tokenCount: tokens.length,
    template: textOf(tokenizer?.chat_template),
    beginText: tokens[Number(tokenizer?.ggml?.["bos_token_id"] ?? -1)] ?? "",
    endText: tokens[Number(tokenizer?.ggml?.["eos_token_id"] ?? -1)] ?? "",
    controlTexts: controlTextsOf(tokens, tokenizer?.ggml?.["token_type"]),
    sampling: samplingOf(general["sampling"]),
    info,
  };
}

/** Returns the paths of all parts of a model, from the path of any part. */
export function partsOf(path: string): string[] {
  const [, stem, , count] = partName.exec(path) ?? [];
  if (stem === undefined || count === undefined) return [path];
  return Array.from(
    { length: Number(count) },
    (_, at) => `${stem}-${String(at + 1).padStart(5, "0")}-of-${count}.gguf`,
  );
}

/** Returns the file's name, as llama-server does. A file named by its checksum gets the name in its metadata. */
export function idOf(path: string, ownName: unknown): string {
  const name = basename(path);
  if (blobName.test(name) && textOf(ownName) !== undefined) return String(ownName).trim();
  return partName.exec(name)?.[1] ?? name.replace(/\.gguf$/i, "");
}

async function statOf(path: string): Promise<{ size: number; mtimeMs: number }> {
  try {
    return await stat(path);
  } catch (error) {
    throw new StartFailure(exitCodes.config, `There is no GGUF file at ${path}`, { cause: error });
  }
}

async function readInfo(path: string, { library }: Engine): Promise<FileInfo> {
  try {
    return await library.readGgufFileInfo(path, { sourceType: "filesystem", logWarnings: false });
  } catch (error) {
    throw new StartFailure(exitCodes.config, `This is not a GGUF file: ${path}`, { cause: error });
  }
}

/** Checks that all weights are present and that the engine knows the kind of model. Loads no weights. */
async function checkWhole(path: string, engine: Engine): Promise<void> {
  try {
    const model = await engine.llama.loadModel({ modelPath: path, vocabOnly: true, gpuLayers: 0 });
    await model.dispose();
  } catch (error) {
    const why = (await engine.lastComplaint()) ?? String(error);
    throw new StartFailure(exitCodes.config, `llama.cpp cannot load ${path}: ${why}`, { cause: error });
  }
}

function purposeOf({ architectureMetadata }: FileInfo): GgufFile["purpose"] {
  const kind = architectureMetadata["pooling_type"];
  if (typeof kind !== "number" || kind === pooling.none) return "chat";
  return kind === pooling.rank ? "other" : "embedding";
}

function controlTextsOf(tokens: readonly string[], types: unknown): string[] {
  return Array.isArray(types) ? tokens.filter((text, at) => types[at] === controlToken && text.length > 1) : [];
}

function samplingOf(given: unknown): GgufFile["sampling"] {
  if (typeof given !== "object" || given === null) return {};
  const values: Readonly<Record<string, unknown>> = { ...given };
  const [temperature, topP, topK] = [values["temp"], values["top_p"], values["top_k"]];
  return {
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof topP === "number" && { topP }),
    ...(typeof topK === "number" && { topK }),
  };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && value >= 1 ? Math.floor(value) : undefined;
}
