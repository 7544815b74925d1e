import { readdir, readFile, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { z } from "zod";

/** Facts of a model from its files on this host. */
export interface ModelFiles {
  readonly sizeBytes: number | undefined;
  /** The window that the model was made for. */
  readonly trainedTokens: number | undefined;
  readonly tokenCount: number | undefined;
  /** True if the model has a part that reads images. */
  readonly seesImages: boolean;
  /** The chat template, from its own file or from the tokenizer's configuration. */
  readonly chatTemplate: string | undefined;
}

const count = z.number().min(1).transform(Math.floor).optional().catch(undefined);
const counts = { max_position_embeddings: count, vocab_size: count };
const modelConfig = z
  .object({
    ...counts,
    text_config: z.object(counts).optional().catch(undefined),
    vision_config: z.looseObject({}).optional().catch(undefined),
  })
  .catch({});
const tokenizerConfig = z.object({ chat_template: z.unknown() }).partial().catch({});

const weightFile = /\.(safetensors|gguf|npz|bin)$/;

/**
 * Reads a model from its folder, or by its name from the Hugging Face cache. Returns undefined when the model is on
 * another host or elsewhere.
 */
export async function readModelFiles(name: string, hubFolder: string): Promise<ModelFiles | undefined> {
  const folder = isAbsolute(name) ? name : await cachedFolder(name, hubFolder);
  if (folder === undefined) return undefined;
  try {
    const files = await readdir(folder);
    const weights = files.filter((file) => weightFile.test(file)).map((file) => join(folder, file));
    const config = modelConfig.parse(await readJson(join(folder, "config.json")));
    const sizes = await Promise.all(weights.map(async (file) => (await stat(file)).size));
    // The configuration of the text part wins, where there are several.
    const { text_config: text = {} } = config;
    return {
      sizeBytes: sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size),
      trainedTokens: text.max_position_embeddings ?? config.max_position_embeddings,
      tokenCount: text.vocab_size ?? config.vocab_size,
      seesImages: config.vision_config !== undefined,
      chatTemplate: await readTemplate(folder),
    };
  } catch {
    return undefined;
  }
}

/**
 * Returns the snapshot folder that `main` points to in the cache. Slashes of the name are replaced, so that the name
 * does not lead out of the cache.
 */
async function cachedFolder(name: string, hubFolder: string): Promise<string | undefined> {
  const repository = join(hubFolder, `models--${name.replaceAll("/", "--")}`);
  try {
    const revision = (await readFile(join(repository, "refs", "main"), "utf8")).trim();
    return /^[\w.-]+$/.test(revision) ? join(repository, "snapshots", revision) : undefined;
  } catch {
    return undefined;
  }
}

async function readTemplate(folder: string): Promise<string | undefined> {
  try {
    return await readFile(join(folder, "chat_template.jinja"), "utf8");
  } catch {
    const { chat_template: template } = tokenizerConfig.parse(await readJson(join(folder, "tokenizer_config.json")));
    return template === undefined || typeof template === "string" ? template : JSON.stringify(template);
  }
}

/** Returns undefined for a file that is missing or not JSON. */
async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** Marks that only the templates of models with a thinking mode have. */
const thinking = /<\/?think(ing)?>|<\|think|\[\/?THINK\]|<seed:think>|enable_thinking|reasoning_effort|<\|channel\|?>/;

export function templateThinks(template: string): boolean {
  return thinking.test(template);
}

export function templateTakesTools(template: string): boolean {
  return /\btools\b/.test(template);
}

/** Returns the date and size of a model file, or undefined when the file is not on this host. */
export async function readModelFile(path: string): Promise<{ createdSeconds: number; sizeBytes: number } | undefined> {
  try {
    const { mtimeMs, size } = await stat(path);
    return { createdSeconds: Math.floor(mtimeMs / 1_000), sizeBytes: size };
  } catch {
    return undefined;
  }
}
