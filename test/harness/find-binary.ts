import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";

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
