import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const folder = import.meta.dirname;
const lockFile = join(folder, "package-lock.json");
/** Holds the lock file that was installed from, so that an unfinished or an older installation is none. */
const installedFile = join(folder, "node_modules", ".installed");
const timeoutMs = 300_000;
/** A registry that is not there is soon given up: the bench goes on without the peers. */
const command = ["ci", "--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"];

let installation: Promise<string | undefined> | undefined;

/** Where a file of a peer's package is. */
export function peerFile(path: string): string {
  return join(folder, "node_modules", path);
}

/** Why the peers are not there, if so: they are installed from npm once, into their own folder. */
export function peersMissing(): Promise<string | undefined> {
  installation ??= installPeers();
  return installation;
}

async function installPeers(): Promise<string | undefined> {
  const lock = await readFile(lockFile, "utf8");
  if ((await readFile(installedFile, "utf8").catch(() => "")) === lock) return undefined;
  process.stderr.write(`Installing the peers of the bench into ${folder}, once.\n`);
  try {
    await promisify(execFile)("npm", command, { cwd: folder, timeout: timeoutMs });
    await writeFile(installedFile, lock);
    return undefined;
  } catch (error) {
    const { stderr = "" } = error as { stderr?: string };
    const said = stderr.split("\n").filter((line) => line.startsWith("npm error"));
    const reason = said.length > 0 ? said.slice(0, 3).join(", ") : String(error);
    return `npm could not install the peers: ${reason}`;
  }
}
