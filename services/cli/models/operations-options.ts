import { readFileSync } from "node:fs";
import { getCACertificates } from "node:tls";
import { Option } from "commander";
import { z } from "zod";
import { portNumber, readConfig, urlList } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { readBy } from "../read-by.ts";
import type { Surroundings } from "../surroundings.ts";
import { findAdminKey } from "./find-admin-key.ts";
import { OperationsPort } from "./operations-port.ts";

export interface GivenOperations {
  readonly operationsUrl?: string;
}

const url = urlList(["http:", "https:"]).refine((text) => URL.canParse(text), "must be one URL");
const variables = z.object({
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
  const { TRUNKLINE_OPERATIONS_URL, TRUNKLINE_OPERATIONS_PORT, ...tls } = readConfig(variables, environment);
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
