import { z } from "zod";
import { keyStoreSettings, keyStoreVariables } from "#shared/keys/open-key-store.ts";
import { portNumber, readConfig, wholeNumber, type Environment } from "#shared/process/config.ts";
import { processConfig, processSettings } from "#shared/process/process-settings.ts";

const mib = 1024 * 1024;

const settings = z
  .object({
    ...processSettings,
    ...keyStoreVariables,
    TRUNKLINE_HOST: z.string().default("127.0.0.1"),
    TRUNKLINE_PORT: portNumber.default(8080),
    TRUNKLINE_OPERATIONS_HOST: z.string().default("127.0.0.1"),
    TRUNKLINE_OPERATIONS_PORT: portNumber.default(8081),
    TRUNKLINE_TLS_CERT: z.string().optional(),
    TRUNKLINE_TLS_KEY: z.string().optional(),
    TRUNKLINE_BODY_BYTES_MAX: wholeNumber(1, 64 * mib).default(32 * mib),
  })
  .strict();

/** The settings of a gateway, by its own words. */
export function gatewayConfig(environment: Environment) {
  const given = readConfig(settings, environment);
  return Object.freeze({
    ...processConfig(given),
    keyStore: keyStoreSettings(given),
    host: given.TRUNKLINE_HOST,
    port: given.TRUNKLINE_PORT,
    operationsHost: given.TRUNKLINE_OPERATIONS_HOST,
    operationsPort: given.TRUNKLINE_OPERATIONS_PORT,
    tlsCertificateFile: given.TRUNKLINE_TLS_CERT,
    tlsKeyFile: given.TRUNKLINE_TLS_KEY,
    bodyBytesMax: given.TRUNKLINE_BODY_BYTES_MAX,
  });
}

export type GatewayConfig = ReturnType<typeof gatewayConfig>;
