import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { ModelDetails } from "#shared/protocol/model.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { parameterText } from "../model-details.ts";
import { digestOfFiles, partsOf, partStem } from "../model-digest.ts";
import type { ChatWrapper, Engine, HistoryItem, EngineModel } from "./gguf-engine.ts";
import { anyObject, listOf, objectOf } from "./gguf-schema.ts";

/** A model as its GGUF file describes it, in one part or several. */
export interface GgufFile {
  readonly path: string;
  readonly id: string;
  readonly createdSeconds: number;
  readonly sizeBytes: number;
  readonly digest: string | undefined;
  readonly details: ModelDetails;
  readonly ownedBy: string;
  /** The purpose of the model: `chat` answers, `embedding` embeds, `other` does neither (a model that ranks). */
  readonly purpose: "chat" | "embedding" | "other";
  readonly trainedTokens: number;
  readonly tokenCount: number;
  /** Matches the control tokens, which steer the model. Text from a client must never become one of them. */
  readonly controls: RegExp;
  /** The sampling values that the model's makers recommend. */
  readonly sampling: { readonly temperature?: number; readonly topP?: number; readonly topK?: number };
  readonly wrapper: ChatWrapper;
  readonly tools: boolean;
  readonly thinks: boolean;
}

const blobName = /^sha256[-:][0-9a-f]{64}$/;
const trainedTokensDefault = 4_096;
const ownerCharactersMax = 100;
const controlToken = 3;
const pooling = { none: 0, rank: 4 } as const;

/** Reads a model's metadata and checks that its file is whole. A defect fails the start with a one-line message. */
export async function readGgufFile(path: string, engine: Engine): Promise<GgufFile> {
  const parts = partsOf(path);
  const [first = path] = parts;
  const stats = await Promise.all(
    parts.map((part) =>
      orRefuse(
        () => stat(part),
        () => `There is no GGUF file at ${part}`,
      ),
    ),
  );
  const {
    metadata,
    architectureMetadata,
    fullTensorInfo = [],
  } = await orRefuse(
    () => engine.library.readGgufFileInfo(first, { sourceType: "filesystem", logWarnings: false }),
    () => `This is not a GGUF file: ${first}`,
  );
  // Loads the vocabulary alone, and checks all the same that all weights are there and that the kind of model is known.
  const model = await orRefuse(
    () => engine.explained(() => engine.llama.loadModel({ modelPath: first, vocabOnly: true, gpuLayers: 0 })),
    (error) => `llama.cpp cannot load ${first}: ${error instanceof Error ? error.message : String(error)}`,
  );
  const wrapper = await orRefuse(
    async () => {
      try {
        return chatWrapperOf(model, engine);
      } finally {
        await model.dispose();
      }
    },
    (error) => `The chat template in ${first} cannot be read: ${String(error).split("\n")[0]}`,
  );
  const { general, tokenizer } = metadata;
  const tokens = listOf(tokenizer?.ggml?.["tokens"]).map(String);
  const tokenTypes = listOf(tokenizer?.ggml?.["token_type"]);
  const controlTexts = tokens.filter((text, at) => tokenTypes[at] === controlToken && text.length > 1);
  return {
    path: first,
    id: idOf(first, general["name"]),
    createdSeconds: Math.floor(Math.max(...stats.map(({ mtimeMs }) => mtimeMs)) / 1_000),
    sizeBytes: stats.reduce((sum, { size }) => sum + size, 0),
    digest: await digestOfFiles(first),
    details: {
      family: textOf(general["architecture"]),
      parameter_size: parameterText(fullTensorInfo.reduce((sum, { dimensions }) => sum + productOf(dimensions), 0)),
      quantization_level: engine.library.GgufFileType[Number(general["file_type"])]?.replace(/^(?:ALL|MOSTLY)_/, ""),
    },
    ownedBy: textOf(general["organization"])?.slice(0, ownerCharactersMax) ?? "gguf",
    purpose: purposeOf(architectureMetadata["pooling_type"]),
    trainedTokens: positive(architectureMetadata["context_length"]) ?? trainedTokensDefault,
    tokenCount: tokens.length,
    controls: new RegExp(controlTexts.map((text) => escaped(text)).join("|") || "$^", "g"),
    sampling: samplingOf(general["sampling"]),
    wrapper,
    tools: callsTools(wrapper, engine),
    thinks: wrapper.settings.segments?.thought !== undefined,
  };
}

/** Returns the file's name, as llama-server does. A file named by its checksum gets the name in its metadata. */
export function idOf(path: string, ownName: unknown): string {
  const name = basename(path);
  if (blobName.test(name) && textOf(ownName) !== undefined) return String(ownName).trim();
  return partStem(name) ?? name.replace(/\.gguf$/i, "");
}

async function orRefuse<Value>(work: () => Promise<Value>, why: (error: unknown) => string): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    throw new StartFailure(exitCodes.config, why(error), { cause: error });
  }
}

/** Returns the form of a model's conversations. Fails if no form fits the model's template. */
function chatWrapperOf(model: EngineModel, { library }: Engine): ChatWrapper {
  const jinjaTemplate = { trimLeadingWhitespaceInResponses: false };
  const needsTools = { ...jinjaTemplate, additionalRenderParameters: { tools: [] } };
  const strict = { fallbackToOtherWrappersOnJinjaError: false };
  try {
    return library.resolveChatWrapper(model, { ...strict, customWrapperSettings: { jinjaTemplate } });
  } catch (error) {
    try {
      return library.resolveChatWrapper(model, { ...strict, customWrapperSettings: { jinjaTemplate: needsTools } });
    } catch {
      const known = library.resolveChatWrapper(model, { noJinja: true });
      // The engine's guesses, where nothing in the template is known to it.
      if (["General", "Llama2Chat"].includes(known.wrapperName)) throw error;
      return known;
    }
  }
}

/**
 * True if the model's own template describes tools and writes a call's arguments as JSON. The engine would teach other
 * models a syntax that they were not trained with: one for those without tools, and one argument `params` for those that
 * write arguments as tags.
 */
function callsTools(wrapper: ChatWrapper, { library }: Engine): boolean {
  const { prefix, paramsPrefix } = wrapper.settings.functions.call;
  if (prefix === library.ChatWrapper.defaultSettings.functions.call.prefix) return false;
  if (/\bparams\b/.test(String(paramsPrefix))) return false;
  const chatHistory: HistoryItem[] = [
    { type: "user", text: "" },
    { type: "model", response: [] },
  ];
  const availableFunctions = { probe_name: { description: "", params: anyObject } };
  return String(wrapper.generateContextState({ chatHistory, availableFunctions }).contextText).includes("probe_name");
}

function purposeOf(kind: unknown): GgufFile["purpose"] {
  if (typeof kind !== "number" || kind === pooling.none) return "chat";
  return kind === pooling.rank ? "other" : "embedding";
}

function samplingOf(given: unknown): GgufFile["sampling"] {
  const { temp: temperature, top_p: topP, top_k: topK } = objectOf(given);
  return {
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof topP === "number" && { topP }),
    ...(typeof topK === "number" && { topK }),
  };
}

function productOf(numbers: readonly (number | bigint)[]): number {
  return numbers.reduce<number>((product, each) => product * Number(each), 1);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && value >= 1 ? Math.floor(value) : undefined;
}
