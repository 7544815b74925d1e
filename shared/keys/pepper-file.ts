import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exitCodes, StartFailure } from "../process/start-failure.ts";
import { newPepperText, pepperBytesMin, pepperText, type Pepper } from "./pepper.ts";
import { makeStateFolder } from "./state-folder.ts";

export function pepperFile(stateDir: string): string {
  return join(stateDir, "pepper");
}

/**
 * Reads the pepper of a state folder; the first call creates it. Processes that start at once all get the same pepper.
 */
export function readOrMakePepper(stateDir: string): Pepper {
  makeStateFolder(stateDir);
  const file = pepperFile(stateDir);
  try {
    if (!existsSync(file)) makePepper(file);
    return pepperText.parse(readFileSync(file, "utf8").trim());
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `The file ${file} must hold a secret of at least ${pepperBytesMin} bytes that this user may read: restore it, or remove it if no keys were issued yet.`,
      { cause: error },
    );
  }
}

/** Creates the file. It appears whole or not at all, and the first process that links it wins. */
function makePepper(file: string): void {
  const draft = `${file}.${process.pid}`;
  try {
    writeFileSync(draft, newPepperText(), { flag: "wx", mode: 0o600, flush: true });
    linkSync(draft, file);
  } catch (error) {
    if (!existsSync(file)) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}
