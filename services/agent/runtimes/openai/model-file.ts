import { stat } from "node:fs/promises";

/** Returns the date and size of a model file, or undefined when the file is not on this host. */
export async function readModelFile(path: string): Promise<{ createdSeconds: number; sizeBytes: number } | undefined> {
  try {
    const { mtimeMs, size } = await stat(path);
    return { createdSeconds: Math.floor(mtimeMs / 1_000), sizeBytes: size };
  } catch {
    return undefined;
  }
}
