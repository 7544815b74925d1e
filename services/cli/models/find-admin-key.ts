import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { parseKeyToken, type KeyToken } from "#shared/keys/key-token.ts";
import { keyStoreVariables } from "#shared/keys/open-key-store.ts";
import { readConfig, secret, type Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { adminKeyFile } from "../own-key.ts";

export interface FoundAdminKey {
  readonly token: KeyToken;
  /** The place where the key was found, for messages. */
  readonly place: string;
}

const { TRUNKLINE_STATE_DIR } = keyStoreVariables;
const variables = z.object({ TRUNKLINE_ADMIN_KEY: secret(z.string().optional()), TRUNKLINE_STATE_DIR });
const howToMakeOne = "`trunkline keys issue --admin --name console` makes one";

/** Returns the admin key in the environment, or else the one that `trunkline up` keeps. */
export function findAdminKey(environment: Environment): FoundAdminKey {
  const settings = readConfig(variables, environment);
  const given = settings.TRUNKLINE_ADMIN_KEY;
  if (given !== undefined) return adminKeyIn(given, "TRUNKLINE_ADMIN_KEY");
  const file = adminKeyFile(resolve(settings.TRUNKLINE_STATE_DIR));
  return adminKeyIn(readKept(file), file);
}

/** Parses an admin or viewer key. Any other text is refused here, so that it is not sent to a gateway. */
function adminKeyIn(text: string, place: string): FoundAdminKey {
  const parsed = parseKeyToken(text.trim());
  if (parsed.outcome === "parsed" && parsed.token.kind !== "model") return { token: parsed.token, place };
  throw new StartFailure(
    exitCodes.config,
    `What is in ${place} is no admin key, which begins with trunkline_admin_: ${howToMakeOne}.`,
  );
}

function readKept(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw new StartFailure(
      exitCodes.config,
      `This takes an admin key, and there is none: set TRUNKLINE_ADMIN_KEY to one (${howToMakeOne}), or ` +
        `TRUNKLINE_STATE_DIR to the folder in which \`trunkline up\` keeps its own (${file} ${isAbsent ? "is not there" : "cannot be read"}).`,
      { cause: error },
    );
  }
}
