import { execFile } from "node:child_process";
import { access, constants, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

/** Where Debian and hand-made installations put servers, though the PATH of a user often leaves these out. */
const serverFolders = ["/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/** The path of a program, or undefined. */
export async function findBinary(
  name: string,
  folders: readonly string[] = [...(process.env["PATH"] ?? "").split(delimiter), ...serverFolders],
): Promise<string | undefined> {
  for (const folder of folders) {
    const path = join(folder, name);
    if (folder !== "" && (await isExecutable(path))) return path;
  }
  return undefined;
}

export async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

const run = promisify(execFile);
const timeoutMs = 300_000;
const policyPath = "/usr/sbin/policy-rc.d";

/** Installs Debian packages as root; the services they bring are not started, since tests start their own. */
export async function aptInstall(packages: readonly string[]): Promise<void> {
  const options = { timeout: timeoutMs, env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  const apt = ["-q", "-o", "DPkg::Lock::Timeout=120"];
  const allowServices = await forbidServices();
  try {
    await run("apt-get", [...apt, "update"], options);
    await run("apt-get", [...apt, "install", "-y", "--no-install-recommends", ...packages], options);
  } finally {
    await allowServices();
  }
}

/** Debian's way to say that no service may be started; a policy that is there already is left as it is. */
async function forbidServices(): Promise<() => Promise<void>> {
  try {
    await writeFile(policyPath, "#!/bin/sh\nexit 101\n", { mode: 0o755, flag: "wx" });
  } catch {
    return () => Promise.resolve();
  }
  return () => rm(policyPath, { force: true });
}
