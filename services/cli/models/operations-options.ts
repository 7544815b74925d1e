import { Option } from "commander";
import { z } from "zod";
import { portNumber, readConfig, urlList } from "#shared/process/config.ts";
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
});

export function operationsUrlOption(): Option {
  return new Option("--operations-url <url>", "the operations port of a gateway").argParser(readBy(url));
}

/** The operations port that the command line or the environment names, with the admin key that is at hand. */
export function givenOperations(given: GivenOperations, { environment, clock }: Surroundings): OperationsPort {
  const { TRUNKLINE_OPERATIONS_URL, TRUNKLINE_OPERATIONS_PORT } = readConfig(variables, environment);
  return new OperationsPort({
    url: given.operationsUrl ?? TRUNKLINE_OPERATIONS_URL ?? `http://127.0.0.1:${TRUNKLINE_OPERATIONS_PORT}`,
    key: findAdminKey(environment),
    clock,
  });
}

export const whichGatewayHelp = `
This asks the operations port of a gateway: the one that --operations-url or TRUNKLINE_OPERATIONS_URL names, otherwise
the one on this machine (TRUNKLINE_OPERATIONS_PORT, 8081). It takes an admin key: the one in TRUNKLINE_ADMIN_KEY,
otherwise the one that "trunkline up" keeps in the folder TRUNKLINE_STATE_DIR (.trunkline).`;
