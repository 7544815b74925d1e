import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import { LRUCache } from "lru-cache";

const partName = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;

/** Returns the name of a model without the number of its part; undefined if it is not in parts. */
export function partStem(name: string): string | undefined {
  return partName.exec(name)?.[1];
}

/** Returns the paths of all parts of a model, from the path of any part. */
export function partsOf(path: string): string[] {
  const [, stem, , count] = partName.exec(path) ?? [];
  if (stem === undefined || count === undefined) return [path];
  const parts = Array.from({ length: Number(count) }, (_, at) => String(at + 1).padStart(5, "0"));
  return parts.map((part) => `${stem}-${part}-of-${count}.gguf`);
}

/** The head and the end of a file, which hold its metadata and its last weights, are read whole. */
const endBytes = 4 * 1024 * 1024;
const samples = 64;
const sampleBytes = 64 * 1024;

const digestsMax = 1_000;
const digestByFile = new LRUCache<string, string>({ max: digestsMax });

/**
 * Returns a digest of a model's files, or undefined if they are not on this host. It reads the size of each file, its ends and evenly
 * spread samples, so that a file of any size takes milliseconds.
 */
export async function digestOfFiles(path: string): Promise<string | undefined> {
  try {
    return hashed(...(await Promise.all(partsOf(path).map(digestOfFile))));
  } catch {
    return undefined;
  }
}

async function digestOfFile(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  const key = `${path}\n${size}\n${mtimeMs}`;
  const known = digestByFile.get(key);
  if (known !== undefined) return known;
  const digest = hashed(String(size), ...(await readSamples(path, size)));
  digestByFile.set(key, digest);
  return digest;
}

async function readSamples(path: string, size: number): Promise<Buffer[]> {
  await using file = await open(path);
  const read = async (from: number, length: number): Promise<Buffer> => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
    return buffer.subarray(0, bytesRead);
  };
  const pieces = [await read(0, endBytes), await read(Math.max(0, size - endBytes), endBytes)];
  for (let at = 0; at < samples; at += 1) pieces.push(await read(Math.floor((size / samples) * at), sampleBytes));
  return pieces;
}

/** Returns a short digest of several values, each of which is told from the next. */
export function hashed(...values: readonly (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const value of values) hash.update(`${value.length}\n`).update(value);
  return hash.digest("hex").slice(0, 32);
}
