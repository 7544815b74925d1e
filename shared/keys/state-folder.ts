import { accessSync, constants, mkdirSync } from "node:fs";
import { exitCodes, StartFailure } from "../process/start-failure.ts";

/**
 * Creates the state folder when it is absent, accessible only to its owner. Throws a `StartFailure` with a line for the
 * operator.
 */
export function makeStateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartFailure(
      exitCodes.cannotCreate,
      `The state folder ${folder} cannot be written to (${reason}): set TRUNKLINE_STATE_DIR to a folder that this user may write to.`,
      { cause: error },
    );
  }
}
