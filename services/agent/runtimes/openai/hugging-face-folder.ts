import { readFile, readdir, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";

/** What the files of a model on this host tell of it. */
export interface ModelFiles {
  readonly sizeBytes: number | undefined;
  readonly config: Readonly<Record<string, unknown>>;
  /** The template, where it lies in a file of its own or in the tokenizer's. */
  readonly chatTemplate: string | undefined;
}

const weightFile = /\.(safetensors|gguf|npz|bin)$/;

/**
 * Reads a model by the folder it lies in, or by its name from the cache of Hugging Face; nothing when it is on another
 * host or elsewhere.
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

/** The window that the model was made for, in the words of most configurations. */
export function trainedTokens(files: ModelFiles): number | undefined {
  return numberIn(files, "max_position_embeddings");
}

/** How many different tokens the model has. */
export function tokenCount(files: ModelFiles): number | undefined {
  return numberIn(files, "vocab_size");
}

/** Whether the model was made with a part that reads images. */
export function seesImages({ config }: ModelFiles): boolean {
  return isRecord(config["vision_config"]);
}

/** The snapshot that the cache's `main` points to. The slashes of a name are none there, so that it does not lead out of the cache. */
async function cachedFolder(name: string, hubFolder: string): Promise<string | undefined> {
  const repository = join(hubFolder, `models--${name.replaceAll("/", "--")}`);
  try {
    const revision = (await readFile(join(repository, "refs", "main"), "utf8")).trim();
    return /^[\w.-]+$/.test(revision) ? join(repository, "snapshots", revision) : undefined;
  } catch {
    return undefined;
  }
}

/** The configuration of the part that reads text wins, where there are several. */
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
