import { execFile } from "node:child_process";
import { access, mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { CodingClient } from "./coding-clients.ts";

const run = promisify(execFile);
const installTimeoutMs = 600_000;

/** The folder in which a client is installed, apart from every project. */
function folderOf({ program, version }: CodingClient): string {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  return join(cache, "trunkline", "clients", `${program}-${version}`);
}

/** Installs a client from the npm registry unless its version is there already, and returns the path of its program. */
export async function installClient(client: CodingClient): Promise<string> {
  const folder = folderOf(client);
  const program = join("node_modules", ".bin", client.program);
  if (!(await isThere(join(folder, program)))) {
    console.log(`Installing ${client.package}@${client.version} into ${folder}, once`);
    const making = `${folder}.making`;
    await rm(making, { recursive: true, force: true });
    await mkdir(making, { recursive: true });
    const install = ["install", "--prefix", making, "--no-fund", "--no-audit", `${client.package}@${client.version}`];
    await run("npm", install, { cwd: making, timeout: installTimeoutMs });
    await rename(making, folder);
  }
  return join(folder, program);
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
