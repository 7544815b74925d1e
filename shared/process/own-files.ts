import { readFileSync } from "node:fs";
import { getAsset, isSea } from "node:sea";
import { pathToFileURL } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Reads a file that comes with Trunkline. It lies beside the source or the bundle whose `import.meta.url` its URL is made
 * of; a single-file executable holds it.
 */
export function readOwnFile(file: URL): Buffer {
  return isSea() ? Buffer.from(getAsset(assetName(file))) : readFileSync(file);
}

/** Starts a thread with a module that comes with Trunkline. */
export function startOwnThread(module: URL, options: WorkerOptions): Worker {
  if (!isSea()) return new Worker(module, options);
  return new Worker(readOwnFile(module).toString(), { ...options, eval: true, execArgv: ["--input-type=module"] });
}

/** Returns the path of a file from the folder of the bundle, which is that of the executable here. */
function assetName(file: URL): string {
  const folder = new URL(".", pathToFileURL(process.execPath));
  return file.href.slice(folder.href.length);
}
