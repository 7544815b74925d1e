import { readFileSync } from "node:fs";
import { type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";

export interface FoundKey {
  readonly token: KeyToken;
  /** The place where the key was found, for messages. */
  readonly place: string;
}

interface KeySearch {
  readonly variable: string;
  /** The value of the variable. */
  readonly given: string | undefined;
  /** The file in which `trunkline up` keeps its own. */
  readonly file: string;
}

interface Wanted {
  readonly name: string;
  readonly prefix: string;
  /** The command that makes one. */
  readonly making: string;
}

const admin: Wanted = {
  name: "admin key",
  prefix: "trunkline_admin_",
  making: "`trunkline keys issue --admin --name console` makes one",
};
const model: Wanted = { name: "API key", prefix: "trunkline_", making: "`trunkline keys issue --name me` makes one" };

/** Returns the admin or viewer key of a command: the one in the environment, or else the one that `trunkline up` keeps. */
export function findAdminKey(search: KeySearch): FoundKey {
  return findKey(search, admin, (token) => token.kind !== "model");
}

/** Returns the API key of a command, from the same places. */
export function findApiKey(search: KeySearch): FoundKey {
  return findKey(search, model, (token) => token.kind === "model");
}

/** Refuses any other text than a key of the right kind, so that it is not sent to a gateway. */
function findKey({ variable, given, file }: KeySearch, wanted: Wanted, fits: (token: KeyToken) => boolean): FoundKey {
  const text = given ?? readKept(file, { variable, wanted });
  const place = given === undefined ? file : variable;
  const parsed = parseKeyToken(text.trim());
  if (parsed.outcome === "parsed" && fits(parsed.token)) return { token: parsed.token, place };
  throw new StartFailure(
    exitCodes.config,
    `What is in ${place} is no ${wanted.name}, which begins with ${wanted.prefix}: ${wanted.making}.`,
  );
}

function readKept(file: string, { variable, wanted }: { readonly variable: string; readonly wanted: Wanted }): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw new StartFailure(
      exitCodes.config,
      `This takes an ${wanted.name}, and there is none: set ${variable} to one (${wanted.making}), or ` +
        `TRUNKLINE_STATE_DIR to the folder in which \`trunkline up\` keeps its own (${file} ${isAbsent ? "is not there" : "cannot be read"}).`,
      { cause: error },
    );
  }
}
