import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { getCACertificates } from "node:tls";
import { Option } from "commander";
import { z } from "zod";
import { type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { keyStoreVariables } from "#shared/keys/open-key-store.ts";
import { type Environment, portNumber, readConfig, secret, urlList } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { readBy, type Surroundings } from "./command-line.ts";
import { OperationsPort } from "./operations-port.ts";
import { adminKeyFile } from "./own-key.ts";

export interface GivenOperations {
  readonly operationsUrl?: string;
}

const url = urlList(["http:", "https:"]).refine((text) => URL.canParse(text), "must be one URL");
const portVariables = z.object({
  TRUNKLINE_OPERATIONS_URL: url.optional(),
  TRUNKLINE_OPERATIONS_PORT: portNumber.default(8081),
  /** Set when a gateway on this host serves HTTPS on its operations port. */
  TRUNKLINE_OPERATIONS_TLS_CERT: z.string().optional(),
  /** The certificate authority of the operations port, when it is not a public one. */
  TRUNKLINE_OPERATIONS_CA: z.string().optional(),
});

export function operationsUrlOption(): Option {
  return new Option("--operations-url <url>", "the operations port of a gateway").argParser(readBy(url));
}

/** Returns the operations port that the command line or the environment names, with the configured admin key. */
export function givenOperations(given: GivenOperations, { environment, clock }: Surroundings): OperationsPort {
  const { TRUNKLINE_OPERATIONS_URL, TRUNKLINE_OPERATIONS_PORT, ...tls } = readConfig(portVariables, environment);
  const { TRUNKLINE_OPERATIONS_TLS_CERT: certificateFile, TRUNKLINE_OPERATIONS_CA: caFile = certificateFile } = tls;
  const scheme = certificateFile === undefined ? "http" : "https";
  return new OperationsPort({
    url: given.operationsUrl ?? TRUNKLINE_OPERATIONS_URL ?? `${scheme}://127.0.0.1:${TRUNKLINE_OPERATIONS_PORT}`,
    ca: caFile === undefined ? undefined : readCa(caFile),
    key: findAdminKey(environment),
    clock,
  });
}

/** Adds the authorities in the file to Node's own, because a URL may lead to a port with a public certificate. */
function readCa(file: string): string[] {
  try {
    return [...getCACertificates("default"), readFileSync(file, "utf8")];
  } catch (error) {
    throw new StartFailure(
      exitCodes.config,
      `TRUNKLINE_OPERATIONS_CA: the file ${file} cannot be read; name one that this user may read.`,
      { cause: error },
    );
  }
}

export const whichGatewayHelp = `
This asks the operations port of a gateway: the one that --operations-url or TRUNKLINE_OPERATIONS_URL names, otherwise
the one on this machine (TRUNKLINE_OPERATIONS_PORT, 8081). It takes an admin key: the one in TRUNKLINE_ADMIN_KEY,
otherwise the one that "trunkline up" keeps in the folder TRUNKLINE_STATE_DIR (.trunkline).`;

export interface FoundAdminKey {
  readonly token: KeyToken;
  /** The place where the key was found, for messages. */
  readonly place: string;
}

const { TRUNKLINE_STATE_DIR } = keyStoreVariables;
const keyVariables = z.object({ TRUNKLINE_ADMIN_KEY: secret(z.string().optional()), TRUNKLINE_STATE_DIR });
const howToMakeOne = "`trunkline keys issue --admin --name console` makes one";

/** Returns the admin key in the environment, or else the one that `trunkline up` keeps. */
function findAdminKey(environment: Environment): FoundAdminKey {
  const settings = readConfig(keyVariables, environment);
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
