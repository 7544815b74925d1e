import { z } from "zod";
import { keyStoreSettings, keyStoreVariables } from "#shared/keys/open-key-store.ts";
import {
  natsUrl,
  networkList,
  portNumber,
  processConfig,
  processSettings,
  readConfig,
  secret,
  wholeNumber,
  type Environment,
} from "#shared/process/config.ts";
import { crossOrigins } from "./http/cross-origin.ts";

/** Host names separated by commas; `*` alone for any. */
const hostNames = z
  .string()
  .transform((text) => text.split(",").map((each) => each.trim().toLowerCase()))
  .refine(
    (names) => names.every((name) => /^[\w.-]+$/.test(name)) || (names.length === 1 && names[0] === "*"),
    "must be names of hosts such as gateway.example, without a port and with commas between, or * alone for any",
  );

const mib = 1024 * 1024;

const settings = z
  .object({
    ...processSettings,
    ...keyStoreVariables,
    /** URL with a user of NATS' system account that may receive connection events. */
    TRUNKLINE_NATS_SYSTEM_URL: secret(natsUrl.optional()),
    TRUNKLINE_HOST: z.string().default("127.0.0.1"),
    TRUNKLINE_PORT: portNumber.default(8080),
    TRUNKLINE_OPERATIONS_HOST: z.string().default("127.0.0.1"),
    TRUNKLINE_OPERATIONS_PORT: portNumber.default(8081),
    TRUNKLINE_OPERATIONS_TLS_CERT: z.string().optional(),
    TRUNKLINE_OPERATIONS_TLS_KEY: z.string().optional(),
    /** Host names that the operations port accepts, besides addresses and names without a dot. */
    TRUNKLINE_OPERATIONS_HOSTS: hostNames.default([]),
    /**
     * Token that a request for the metrics must send. Without it, every client that reaches the operations port may
     * read them.
     */
    TRUNKLINE_METRICS_TOKEN: secret(
      z
        .string()
        .regex(/^[!-~]{16,}$/, "must have at least 16 characters, none of them a space")
        .optional(),
    ),
    TRUNKLINE_TLS_CERT: z.string().optional(),
    TRUNKLINE_TLS_KEY: z.string().optional(),
    TRUNKLINE_BODY_BYTES_MAX: wholeNumber(1, 64 * mib).default(32 * mib),
    /** Connections that each port of a gateway has open at once, and the most of them from one address. */
    TRUNKLINE_CONNECTIONS_MAX: wholeNumber(1, 1_000_000).default(16_384),
    TRUNKLINE_CONNECTIONS_PER_ADDRESS_MAX: wholeNumber(1, 1_000_000).default(4_096),
    /** How long known keys stay usable while their store is away; 0 disables this. */
    TRUNKLINE_KEYS_AWAY_MS: wholeNumber(0, 3_600_000).default(60_000),
    /** How long a stopping gateway keeps serving after it has reported that it is not ready. */
    TRUNKLINE_GRACE_MS: wholeNumber(0, 600_000).optional(),
    /** How long a request waits for a machine of a known model that is away; with 0 it fails at once. */
    TRUNKLINE_WAIT_MS: wholeNumber(0, 600_000).default(0),
    /** Origins of the web apps that may call from a browser; none by default. */
    TRUNKLINE_CORS_ORIGINS: crossOrigins.default([]),
    /** Proxies whose report of a client's address is trusted. */
    TRUNKLINE_TRUSTED_PROXIES: networkList.default([]),
    /** `shared` lets keys use what machines cached of each other's prompts; for a site of one tenant. */
    TRUNKLINE_PROMPT_CACHE: z.enum(["per-key", "shared"]).default("per-key"),
  })
  .strict();

/** Reads the settings of a gateway from the environment, and names them as the gateway does. */
export function gatewayConfig(environment: Environment) {
  const given = readConfig(settings, environment);
  return Object.freeze({
    ...processConfig(given),
    keyStore: keyStoreSettings(given),
    natsSystemUrl: given.TRUNKLINE_NATS_SYSTEM_URL,
    host: given.TRUNKLINE_HOST,
    port: given.TRUNKLINE_PORT,
    operationsHost: given.TRUNKLINE_OPERATIONS_HOST,
    operationsPort: given.TRUNKLINE_OPERATIONS_PORT,
    operationsTls: {
      tlsCertificateFile: given.TRUNKLINE_OPERATIONS_TLS_CERT,
      tlsKeyFile: given.TRUNKLINE_OPERATIONS_TLS_KEY,
    },
    operationsNames: [given.TRUNKLINE_OPERATIONS_HOST, ...given.TRUNKLINE_OPERATIONS_HOSTS],
    metricsToken: given.TRUNKLINE_METRICS_TOKEN,
    tlsCertificateFile: given.TRUNKLINE_TLS_CERT,
    tlsKeyFile: given.TRUNKLINE_TLS_KEY,
    bodyBytesMax: given.TRUNKLINE_BODY_BYTES_MAX,
    connections: {
      connectionsMax: given.TRUNKLINE_CONNECTIONS_MAX,
      connectionsPerAddressMax: given.TRUNKLINE_CONNECTIONS_PER_ADDRESS_MAX,
    },
    keysAwayMs: given.TRUNKLINE_KEYS_AWAY_MS,
    graceMs: given.TRUNKLINE_GRACE_MS,
    waitMs: given.TRUNKLINE_WAIT_MS,
    promptCache: given.TRUNKLINE_PROMPT_CACHE,
    corsOrigins: given.TRUNKLINE_CORS_ORIGINS,
    trustedProxies: given.TRUNKLINE_TRUSTED_PROXIES,
  });
}

export type GatewayConfig = ReturnType<typeof gatewayConfig>;
