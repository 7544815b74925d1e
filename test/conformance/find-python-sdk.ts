import { execFile } from "node:child_process";
import { mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary } from "../harness/find-binary.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
/** Newer ones may be tried by hand; a test that changes by itself tests nothing. */
const versions = { openai: "3.54.0", anthropic: "2.12.0", ollama: "0.6.3", llm_comply: "0.5.0" } as const;
type Package = keyof typeof versions;
const installTimeoutMs = 50_000;
const lookTimeoutMs = 10_000;

/** How to run a program that imports an official Python SDK. */
export interface PythonSdk {
  readonly package: Package;
  readonly python: string;
  /** The value of PYTHONPATH. */
  readonly path: string;
}

/**
 * An official Python SDK, which is installed once for all test runs beside nothing of the user's own, or why there is
 * none: tests that need it are skipped then, and say so.
 */
export async function findPythonSdk(name: Package): Promise<PythonSdk | { readonly missing: string }> {
  const python = await findBinary("python3");
  if (python === undefined) return missing(name, "there is no python3 on the PATH");
  try {
    const path = join(cacheFolder(), `${name}-python-${versions[name]}-${await tagOf(python)}`);
    const found = { package: name, python, path };
    if (!(await hasSdk(found))) await installOnce(found);
    return found;
  } catch (error) {
    return missing(name, error instanceof Error ? (error.message.split("\n").at(-2) ?? error.message) : String(error));
  }
}

function missing(name: Package, why: string): { readonly missing: string } {
  console.log(`The Python SDK ${name} is not here and could not be installed, so its tests are skipped: ${why}`);
  return { missing: why };
}

function cacheFolder(): string {
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "trunkline");
}

/** Parts of it are made for one version of Python. */
async function tagOf(python: string): Promise<string> {
  const program = "import sys; print(sys.implementation.cache_tag)";
  const { stdout } = await run(python, ["-c", program], { timeout: lookTimeoutMs });
  return stdout.trim();
}

async function hasSdk({ package: name, python, path }: PythonSdk): Promise<boolean> {
  const program = `import ${name}; from importlib.metadata import version; print(version("${name}"))`;
  const env = { ...process.env, PYTHONPATH: path };
  return run(python, ["-c", program], { env, timeout: lookTimeoutMs }).then(
    ({ stdout }) => stdout.trim() === versions[name],
    () => false,
  );
}

/** Test runs may go side by side: one installs, the others wait for it. */
async function installOnce(sdk: PythonSdk): Promise<void> {
  const making = `${sdk.path}.making`;
  await mkdir(cacheFolder(), { recursive: true });
  const isFirst = await mkdir(making).then(
    () => true,
    () => false,
  );
  if (!isFirst) {
    const what = `another test run to install the SDK (remove ${making} if none does)`;
    await until(() => hasSdk(sdk), { what, timeoutMs: installTimeoutMs, intervalMs: 500 });
    return;
  }
  try {
    const { package: name } = sdk;
    console.log(`Installing the Python SDK ${name} ${versions[name]} for tests into ${sdk.path}, once`);
    const quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"];
    const install = ["-m", "pip", "install", ...quiet, "--target", making, `${name}==${versions[name]}`];
    await run(sdk.python, install, { timeout: installTimeoutMs });
    await rename(making, sdk.path);
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}
