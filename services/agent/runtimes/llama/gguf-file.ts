import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import type { Engine } from "./gguf-engine.ts";
import type { FileInfo } from "./gguf-library.ts";

/** A model as its file describes it, in however many parts that lies. */
export interface GgufFile {
  readonly path: string;
  readonly id: string;
  readonly createdSeconds: number;
  readonly sizeBytes: number;
  readonly ownedBy: string;
  /** What it was made for: to answer, to embed, or neither (a model that ranks). */
  readonly purpose: "chat" | "embedding" | "other";
  readonly trainedTokens: number;
  /** How many different tokens there are. */
  readonly tokenCount: number;
  readonly template: string | undefined;
  readonly beginText: string;
  readonly endText: string;
  /** The texts of the tokens that steer the model. What people write must never become one of them. */
  readonly controlTexts: readonly string[];
  /** What whoever made the model recommends. */
  readonly sampling: { readonly temperature?: number; readonly topP?: number; readonly topK?: number };
  readonly info: FileInfo;
}

const partName = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
const blobName = /^sha256[-:][0-9a-f]{64}$/;

const trainedTokensDefault = 4_096;
const ownerCharactersMax = 100;
const controlToken = 3;
const pooling = { none: 0, rank: 4 } as const;

/** Reads what a file says of its model, and whether it is whole; what is wrong with it fails the start in one line. */
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

/** The files of a model that lies in several, from the name of any of them. */
export function partsOf(path: string): string[] {
  const [, stem, , count] = partName.exec(path) ?? [];
  if (stem === undefined || count === undefined) return [path];
  return Array.from(
    { length: Number(count) },
    (_, at) => `${stem}-${String(at + 1).padStart(5, "0")}-of-${count}.gguf`,
  );
}

/** The name of the file, as llama-server has it too; what was stored under its checksum is called what it calls itself. */
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

/** Loads no weights: the engine checks that all of them are there, and that it knows the kind of model. */
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
