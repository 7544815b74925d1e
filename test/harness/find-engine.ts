import { execFile } from "node:child_process";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { findPackageJSON } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { engineVersion } from "../../services/agent/runtimes/llama/gguf-engine.ts";
import { until } from "./until.ts";

const run = promisify(execFile);
const installTimeoutMs = 50_000;

/** Where the real engine is, or why there is none: tests that need it are skipped then, and say so. */
export type FoundEngine = { readonly dir: string | undefined } | { readonly missing: string };

/** Only the package for this machine's processor: with the ones for graphics cards it would be a hundred times as large. */
const binaries: Readonly<Record<string, string>> = {
  "linux-x64": "linux-x64",
  "linux-arm64": "linux-arm64",
  "darwin-arm64": "mac-arm64-metal",
  "darwin-x64": "mac-x64",
  "win32-x64": "win-x64",
  "win32-arm64": "win-arm64",
};

/** The engine beside Trunkline, in TRUNKLINE_ENGINE_DIR, or else one that is installed once for all test runs. */
export async function findEngine(): Promise<FoundEngine> {
  const named = process.env["TRUNKLINE_ENGINE_DIR"];
  if (named !== undefined && named !== "") return { dir: named };
  if (hasEngine(import.meta.dirname)) return { dir: undefined };
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const dir = join(cache, "trunkline", `node-llama-cpp-${engineVersion}`);
  if (hasEngine(dir)) return { dir };
  try {
    await installOnce(dir);
    return { dir };
  } catch (error) {
    const missing = reasonOf(error);
    console.log(`The real engine is not here and could not be installed, so its tests are skipped: ${missing}`);
    return { missing };
  }
}

/** What npm says of it, in one line, where it was npm that failed. */
function reasonOf(error: unknown): string {
  const [first = "", ...more] = (error instanceof Error ? error.message : String(error)).split("\n");
  return more.find((line) => /^npm error (?!code|errno|syscall)/.test(line)) ?? first;
}

function hasEngine(dir: string): boolean {
  try {
    return findPackageJSON("node-llama-cpp", pathToFileURL(join(dir, "beside.js"))) !== undefined;
  } catch {
    return false;
  }
}

/** Test files run side by side: one installs, the others wait for it. */
async function installOnce(dir: string): Promise<void> {
  const binary = binaries[`${process.platform}-${process.arch}`];
  if (binary === undefined) throw new Error(`there is no engine for ${process.platform} on ${process.arch}`);
  const making = `${dir}.making`;
  await mkdir(join(dir, ".."), { recursive: true });
  const isFirst = await mkdir(making).then(
    () => true,
    () => false,
  );
  if (!isFirst) {
    const what = `another test file to install the engine (remove ${making} if none does)`;
    await until(() => hasEngine(dir), { what, timeoutMs: installTimeoutMs, intervalMs: 200 });
    return;
  }
  try {
    console.log(`Installing node-llama-cpp ${engineVersion} for tests into ${dir}, once`);
    await writeFile(join(making, "package.json"), `{ "private": true }\n`);
    const packages = [`node-llama-cpp@${engineVersion}`, `@node-llama-cpp/${binary}@${engineVersion}`];
    const quiet = [
      "--ignore-scripts",
      "--omit=optional",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
      "--fetch-retries=0",
    ];
    const options = { cwd: making, timeout: installTimeoutMs, shell: process.platform === "win32" };
    await run("npm", ["install", ...quiet, ...packages], options);
    await rename(making, dir);
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}
