import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { getCACertificates } from "node:tls";
import { Option } from "commander";
import { z } from "zod";
import { keyStoreVariables } from "#shared/keys/open-key-store.ts";
import { defaultPorts, type Environment, portNumber, readConfig, secret, urlList } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { readBy, type Surroundings } from "./command-line.ts";
import { findAdminKey, type FoundKey } from "./find-key.ts";
import { OperationsPort } from "./operations-port.ts";
import { ownAddresses } from "./own-addresses.ts";
import { adminKeyFile } from "./own-key.ts";

export interface GivenOperations {
  readonly operationsUrl?: string;
}

const url = urlList(["http:", "https:"]).refine((text) => URL.canParse(text), "must be one URL");
const { TRUNKLINE_STATE_DIR } = keyStoreVariables;
const portVariables = z.object({
  TRUNKLINE_OPERATIONS_URL: url.optional(),
  TRUNKLINE_OPERATIONS_PORT: portNumber.optional(),
  TRUNKLINE_STATE_DIR,
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
  const settings = readConfig(portVariables, environment);
  const { TRUNKLINE_OPERATIONS_URL, TRUNKLINE_OPERATIONS_PORT: port, ...tls } = settings;
  const { TRUNKLINE_OPERATIONS_TLS_CERT: certificateFile, TRUNKLINE_OPERATIONS_CA: caFile = certificateFile } = tls;
  const scheme = certificateFile === undefined ? "http" : "https";
  const noted = port === undefined ? ownAddresses(resolve(settings.TRUNKLINE_STATE_DIR)).operationsUrl : undefined;
  const usual = `${scheme}://127.0.0.1:${port ?? defaultPorts.operations}`;
  return new OperationsPort({
    url: given.operationsUrl ?? TRUNKLINE_OPERATIONS_URL ?? noted ?? usual,
    ca: caFile === undefined ? undefined : readCa(caFile),
    key: adminKeyOf(environment),
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
the one on this machine: at TRUNKLINE_OPERATIONS_PORT, or where a "trunkline up" on the folder TRUNKLINE_STATE_DIR
(.trunkline) listens, or at 8081. It takes an admin key: the one in TRUNKLINE_ADMIN_KEY, otherwise the one that
"trunkline up" keeps in that folder.`;

const keyVariables = z.object({ TRUNKLINE_ADMIN_KEY: secret(z.string().optional()), TRUNKLINE_STATE_DIR });

function adminKeyOf(environment: Environment): FoundKey {
  const { TRUNKLINE_ADMIN_KEY: given, TRUNKLINE_STATE_DIR: stateDir } = readConfig(keyVariables, environment);
  return findAdminKey({ variable: "TRUNKLINE_ADMIN_KEY", given, file: adminKeyFile(resolve(stateDir)) });
}
