import { accessSync, constants, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { exitCodes, StartFailure } from "./lifecycle.ts";

/**
 * Creates the state folder when it is absent, accessible only to its owner. Throws a `StartFailure` with a line for the
 * operator that names `setting`. Windows ignores the mode: there a folder inherits the access list of the folder around it,
 * and within a user's profile that is the user, the system and its administrators.
 */
export function makeStateFolder(folder: string, setting = "TRUNKLINE_STATE_DIR"): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw notWritable(folder, error, setting);
  }
  assertOwnFolder(folder, undefined, setting);
}

/**
 * Refuses a state folder of another person, who could read and replace what is kept there. A folder of the superuser is
 * accepted, as volumes of containers are, and the superuser may use all folders. A missing folder is left to its reader.
 */
export function assertOwnFolder(folder: string, user = process.getuid?.(), setting = "TRUNKLINE_STATE_DIR"): void {
  const owner = statSync(folder, { throwIfNoEntry: false })?.uid;
  if (user === undefined || owner === undefined || [user, superuser].includes(owner) || user === superuser) return;
  throw new StartFailure(
    exitCodes.config,
    `${folder} belongs to another user (uid ${owner}, and this is uid ${user}), who could read and replace the keys in it: run this as that user, or set ${setting} to a folder of this one.`,
  );
}

const superuser = 0;

/**
 * Writes a file of the state folder, readable only by its owner. The file appears whole or keeps its old text, also
 * when the host loses power.
 */
export function writeStateFile(file: string, text: string, setting = "TRUNKLINE_STATE_DIR"): void {
  const draft = `${file}.draft`;
  try {
    // A draft that another process left may have another owner's mode.
    rmSync(draft, { force: true });
    writeFileSync(draft, text, { flag: "wx", mode: 0o600, flush: true });
    replace(file, draft);
  } catch (error) {
    throw notWritable(file, error, setting);
  }
}

const attemptsMax = 20;
const retryMs = 10;

/**
 * Renames a draft to a file. On Windows that fails while another process, such as a virus scanner, has the file open, so
 * it is tried again for a fifth of a second.
 */
export function replace(
  file: string,
  draft: string,
  { rename = renameSync, platform = process.platform }: { rename?: typeof renameSync; platform?: string } = {},
): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      rename(draft, file);
      return;
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      const isInUse = code === "EPERM" || code === "EACCES" || code === "EBUSY";
      if (platform !== "win32" || !isInUse || attempt === attemptsMax) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
    }
  }
}

function notWritable(path: string, error: unknown, setting: string): StartFailure {
  const reason = error instanceof Error ? error.message : String(error);
  return new StartFailure(
    exitCodes.cannotCreate,
    `${path} cannot be written (${reason}): set ${setting} to a folder that this user may write to.`,
    { cause: error },
  );
}
