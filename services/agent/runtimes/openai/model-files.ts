import { readdir, readFile, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";

/** Facts of a model from its files on this host. */
export interface ModelFiles {
  readonly sizeBytes: number | undefined;
  readonly config: Readonly<Record<string, unknown>>;
  /** The chat template, from its own file or from the tokenizer's configuration. */
  readonly chatTemplate: string | undefined;
}

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
    const config = await readJson(join(folder, "config.json"));
    const weights = files.filter((file) => weightFile.test(file)).map((file) => join(folder, file));
    return { sizeBytes: await sizeOf(weights), config: config ?? {}, chatTemplate: await readTemplate(folder) };
  } catch {
    return undefined;
  }
}

/** Returns the window that the model was made for, by the key that most configurations use. */
export function trainedTokens(files: ModelFiles): number | undefined {
  return numberIn(files, "max_position_embeddings");
}

/** Returns the number of different tokens of the model. */
export function tokenCount(files: ModelFiles): number | undefined {
  return numberIn(files, "vocab_size");
}

/** True if the model has a part that reads images. */
export function seesImages({ config }: ModelFiles): boolean {
  return isRecord(config["vision_config"]);
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

/** Reads a number of the configuration. The configuration of the text part wins, where there are several. */
function numberIn({ config }: ModelFiles, name: string): number | undefined {
  const inner = config["text_config"];
  const own = isRecord(inner) ? inner[name] : undefined;
  const value = own ?? config[name];
  return typeof value === "number" && value >= 1 ? Math.floor(value) : undefined;
}

async function sizeOf(files: readonly string[]): Promise<number | undefined> {
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
  return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0);
}

async function readTemplate(folder: string): Promise<string | undefined> {
  try {
    return await readFile(join(folder, "chat_template.jinja"), "utf8");
  } catch {
    const tokenizer = await readJson(join(folder, "tokenizer_config.json"));
    const template = tokenizer?.["chat_template"];
    return template === undefined ? undefined : typeof template === "string" ? template : JSON.stringify(template);
  }
}

async function readJson(file: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Marks that only the templates of models with a thinking mode have. */
const thinking = /<\/?think(ing)?>|<\|think|\[\/?THINK\]|<seed:think>|enable_thinking|reasoning_effort|<\|channel\|?>/;

/** True if the chat template belongs to a thinking model. */
export function templateThinks(template: string): boolean {
  return thinking.test(template);
}

/** True if the chat template can pass tools to the model. */
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
