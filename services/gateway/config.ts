import { z } from "zod";
import { keyStoreSettings, keyStoreVariables } from "#shared/keys/open-key-store.ts";
import { networkList, portNumber, readConfig, wholeNumber, type Environment } from "#shared/process/config.ts";
import { processConfig, processSettings } from "#shared/process/process-settings.ts";
import { crossOrigins } from "./access/cross-origin.ts";

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
    /** For how long known keys go on while their store is away; with 0 no key does. */
    TRUNKLINE_KEYS_AWAY_MS: wholeNumber(0, 3_600_000).default(60_000),
    /** How long a gateway that is told to stop serves on after it said that it is not ready. */
    TRUNKLINE_GRACE_MS: wholeNumber(0, 600_000).optional(),
    /** For how long a request waits for a machine of a known model that is away; with 0 it is told at once. */
    TRUNKLINE_WAIT_MS: wholeNumber(0, 600_000).default(0),
    /** How often official clients are kept from giving up on a whole answer; with 0 never. */
    TRUNKLINE_INTERIM_MS: wholeNumber(0, 300_000).default(0),
    /** The web apps that may call from a browser; none unless named. */
    TRUNKLINE_CORS_ORIGINS: crossOrigins.default([]),
    /** The proxies whose word on a client's address is believed. */
    TRUNKLINE_TRUSTED_PROXIES: networkList.default([]),
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
    keysAwayMs: given.TRUNKLINE_KEYS_AWAY_MS,
    graceMs: given.TRUNKLINE_GRACE_MS,
    waitMs: given.TRUNKLINE_WAIT_MS,
    interimMs: given.TRUNKLINE_INTERIM_MS,
    corsOrigins: given.TRUNKLINE_CORS_ORIGINS,
    trustedProxies: given.TRUNKLINE_TRUSTED_PROXIES,
  });
}

export type GatewayConfig = ReturnType<typeof gatewayConfig>;
