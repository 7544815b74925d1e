import { isIPv6 } from "node:net";
import { z } from "zod";
import { keyStoreSettings, keyStoreVariables } from "#shared/store/key-store-settings.ts";
import {
  commaList,
  ConfigFailure,
  defaultPorts,
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
import { storedBytesDefault, storedDaysMax } from "#shared/records/stored-responses.ts";
import { keptRequestsDefault } from "#shared/requests/request-records.ts";
import { dayMs } from "#shared/process/clock.ts";
import { isLoopback, publicOrigin } from "#shared/protocol/pairing.ts";
import type { OpenIdSettings } from "./operations/open-id.ts";
import { type SessionRole, sessionRoles } from "#shared/records/session-record.ts";
import { type MediaPrices, mediaUnits } from "./apis/media/media-price.ts";
import { crossOrigins } from "./http/cross-origin.ts";

/** Reads names of hosts separated by commas, in small letters. */
function hostList(isGood: (names: readonly string[]) => boolean, message: string) {
  return z.string().toLowerCase().pipe(commaList).refine(isGood, message);
}

/** Host names; `*` alone for any. */
const hostNames = hostList(
  (names) => names.every((name) => /^[\w.-]+$/.test(name)) || (names.length === 1 && names[0] === "*"),
  "must be names of hosts such as gateway.example, without a port and with commas between, or * alone for any",
);

/** Names of hosts; `*.` before a name for all below it, `*` for any. */
const imageHosts = hostList(
  (names) => names.every((name) => /^(?:\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)+)$/.test(name)),
  "must be names of hosts such as images.example or *.example.com, with commas between, or * for any",
);

const mib = 1024 * 1024;

/** Values of a claim with their roles, such as `ops=admin,night=operator,*=viewer`. */
const claimRoles = z.string().transform(
  (text, context) =>
    new Map(
      text.split(",").map((rule): [string, SessionRole] => {
        const at = rule.lastIndexOf("=");
        const value = rule.slice(0, Math.max(at, 0)).trim();
        const role = sessionRoles.find((each) => each === rule.slice(at + 1).trim());
        if (role === undefined || value === "") {
          const message = "must be values of the claim with viewer, operator or admin, such as ops=admin,*=viewer";
          context.addIssue({ code: "custom", message });
        }
        return [value, role ?? "viewer"];
      }),
    ),
);

/** Prices in tokens, such as `second=50,character=0.3,image=1000`. */
const mediaPrices = z.string().transform((text, context): MediaPrices => {
  const rules = text.split(",").map((rule) => /^\s*(\w+)\s*=\s*(\d{1,7}(?:\.\d{1,3})?)\s*$/.exec(rule));
  const prices = rules.map((rule) => [mediaUnits.find((unit) => unit === rule?.[1]), Number(rule?.[2])] as const);
  if (prices.some(([unit]) => unit === undefined)) {
    const message = "must be tokens for a second, a character or an image, such as second=50,character=0.3,image=1000";
    context.addIssue({ code: "custom", message });
  }
  return Object.fromEntries(prices);
});

const settings = z
  .object({
    ...processSettings,
    ...keyStoreVariables,
    /** Seed of the account's signing key, with which gateways make users of NATS for machines. */
    TRUNKLINE_NATS_SIGNING_KEY: secret(
      z
        .string()
        .regex(/^SA[A-Z2-7]{56}$/, "must be a signing key of an account: machines.seed of `trunkline nats init`")
        .optional(),
    ),
    /** Credentials file of a user of NATS' system account that may receive connection events. */
    TRUNKLINE_NATS_SYSTEM_CREDS: z.string().optional(),
    /** URL with a user of NATS' system account that may receive connection events. */
    TRUNKLINE_NATS_SYSTEM_URL: secret(natsUrl.optional()),
    /** The URL by which clients and machines reach the public port. */
    TRUNKLINE_PUBLIC_URL: publicOrigin.optional(),
    TRUNKLINE_HOST: z.string().optional(),
    TRUNKLINE_PORT: portNumber.default(defaultPorts.public),
    TRUNKLINE_OPERATIONS_HOST: z.string().default("127.0.0.1"),
    TRUNKLINE_OPERATIONS_PORT: portNumber.default(defaultPorts.operations),
    TRUNKLINE_OPERATIONS_TLS_CERT: z.string().optional(),
    TRUNKLINE_OPERATIONS_TLS_KEY: z.string().optional(),
    /** Host names that the operations port accepts, besides addresses and names without a dot. */
    TRUNKLINE_OPERATIONS_HOSTS: hostNames.default([]),
    /** The address of the console behind a proxy. Its name is accepted in the Host header. */
    TRUNKLINE_CONSOLE_URL: publicOrigin.optional(),
    /** Sign-in to the console by OpenID Connect. */
    TRUNKLINE_OIDC_ISSUER: z.url({ protocol: /^https?$/ }).optional(),
    TRUNKLINE_OIDC_CLIENT_ID: z.string().optional(),
    TRUNKLINE_OIDC_CLIENT_SECRET: secret(z.string().optional()),
    /** The claim that decides a person's role, and the roles of its values. */
    TRUNKLINE_OIDC_CLAIM: z.string().min(1).default("groups"),
    TRUNKLINE_OIDC_ROLES: claimRoles.optional(),
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
    /** Time for which known keys stay usable while their store is away; 0 disables this. */
    TRUNKLINE_KEYS_AWAY_MS: wholeNumber(0, 3_600_000).default(60_000),
    /** Records of ended requests that the store keeps, and for how many days; none with 0. */
    TRUNKLINE_REQUESTS_MAX: wholeNumber(0, 10_000_000).default(keptRequestsDefault.max),
    TRUNKLINE_REQUESTS_DAYS: wholeNumber(1, 400).default(keptRequestsDefault.ms / dayMs),
    /** Time for which a stopping gateway keeps serving after it has reported that it is not ready. */
    TRUNKLINE_GRACE_MS: wholeNumber(0, 600_000).optional(),
    /** The wait of a request for a machine of a known model that is away; with 0 it fails at once. */
    TRUNKLINE_WAIT_MS: wholeNumber(0, 600_000).default(0),
    /** Origins of the web apps that may call from a browser; none by default. */
    TRUNKLINE_CORS_ORIGINS: crossOrigins.default([]),
    /** Proxies whose report of a client's address is trusted. */
    TRUNKLINE_TRUSTED_PROXIES: networkList.default([]),
    /** Hosts from which images are fetched; none by default. */
    TRUNKLINE_IMAGE_HOSTS: imageHosts.default([]),
    /** The tokens that a second, character or image costs, where its server reports none. */
    TRUNKLINE_MEDIA_TOKENS: mediaPrices.default({}),
    /** `off`: an answer ends when its machine is lost, and no other machine goes on with it. */
    TRUNKLINE_CONTINUE: z.enum(["on", "off"]).default("on"),
    /** `on`: the responses of all keys are stored, encrypted. Otherwise of those keys whose record says so. */
    TRUNKLINE_STORE_RESPONSES: z.enum(["on", "off"]).default("off"),
    /** Days for which a response is stored. */
    TRUNKLINE_STORE_RESPONSES_DAYS: wholeNumber(1, storedDaysMax).default(storedDaysMax),
    /** Bytes of the stored responses of the site, and of one key. One response is always kept. */
    TRUNKLINE_STORE_RESPONSES_BYTES_MAX: wholeNumber(mib, 2 ** 50).default(storedBytesDefault.site),
    TRUNKLINE_STORE_RESPONSES_BYTES_PER_KEY_MAX: wholeNumber(mib, 2 ** 50).default(storedBytesDefault.key),
    /** `shared` lets keys use what machines cached of each other's prompts; for a site of one tenant. */
    TRUNKLINE_PROMPT_CACHE: z.enum(["per-key", "shared"]).default("per-key"),
  })
  .strict();

/** Reads the settings of a gateway from the environment, and names them as the gateway does. */
export function gatewayConfig(environment: Environment) {
  const given = readConfig(settings, environment);
  const consoleOrigin = given.TRUNKLINE_CONSOLE_URL;
  return Object.freeze({
    ...processConfig(given),
    keyStore: keyStoreSettings(given),
    natsSigningKey: given.TRUNKLINE_NATS_SIGNING_KEY,
    natsSystemCredentialsFile: given.TRUNKLINE_NATS_SYSTEM_CREDS,
    natsSystemUrl: given.TRUNKLINE_NATS_SYSTEM_URL,
    publicUrl: given.TRUNKLINE_PUBLIC_URL,
    ...publicPort(given),
    port: given.TRUNKLINE_PORT,
    operationsHost: given.TRUNKLINE_OPERATIONS_HOST,
    operationsPort: given.TRUNKLINE_OPERATIONS_PORT,
    operationsTls: {
      tlsCertificateFile: given.TRUNKLINE_OPERATIONS_TLS_CERT,
      tlsKeyFile: given.TRUNKLINE_OPERATIONS_TLS_KEY,
    },
    operationsNames: [
      given.TRUNKLINE_OPERATIONS_HOST,
      ...given.TRUNKLINE_OPERATIONS_HOSTS,
      ...hostNameOf(consoleOrigin),
    ],
    consoleUrl: consoleOrigin && `${consoleOrigin}/console`,
    openId: openIdSettings(given),
    metricsToken: given.TRUNKLINE_METRICS_TOKEN,
    tlsCertificateFile: given.TRUNKLINE_TLS_CERT,
    tlsKeyFile: given.TRUNKLINE_TLS_KEY,
    bodyBytesMax: given.TRUNKLINE_BODY_BYTES_MAX,
    connections: {
      connectionsMax: given.TRUNKLINE_CONNECTIONS_MAX,
      connectionsPerAddressMax: given.TRUNKLINE_CONNECTIONS_PER_ADDRESS_MAX,
    },
    keptRequests: { max: given.TRUNKLINE_REQUESTS_MAX, ms: given.TRUNKLINE_REQUESTS_DAYS * dayMs },
    keysAwayMs: given.TRUNKLINE_KEYS_AWAY_MS,
    graceMs: given.TRUNKLINE_GRACE_MS,
    waitMs: given.TRUNKLINE_WAIT_MS,
    continues: given.TRUNKLINE_CONTINUE === "on",
    storesResponses: {
      ofAll: given.TRUNKLINE_STORE_RESPONSES === "on",
      terms: {
        keptMs: given.TRUNKLINE_STORE_RESPONSES_DAYS * dayMs,
        keyBytesMax: given.TRUNKLINE_STORE_RESPONSES_BYTES_PER_KEY_MAX,
        siteBytesMax: given.TRUNKLINE_STORE_RESPONSES_BYTES_MAX,
      },
    },
    promptCache: given.TRUNKLINE_PROMPT_CACHE,
    imageHosts: given.TRUNKLINE_IMAGE_HOSTS,
    mediaPrices: given.TRUNKLINE_MEDIA_TOKENS,
    corsOrigins: given.TRUNKLINE_CORS_ORIGINS,
    trustedProxies: given.TRUNKLINE_TRUSTED_PROXIES,
  });
}

/** Returns how people sign in by OpenID Connect; undefined without an issuer. */
function openIdSettings(given: z.output<typeof settings>): OpenIdSettings | undefined {
  const { TRUNKLINE_OIDC_ISSUER: issuer, TRUNKLINE_OIDC_CLIENT_ID: clientId } = given;
  const { TRUNKLINE_OIDC_CLAIM: claim, TRUNKLINE_OIDC_ROLES: roles } = given;
  if (issuer === undefined) return undefined;
  if (clientId === undefined) {
    throw new ConfigFailure([
      "TRUNKLINE_OIDC_ISSUER needs TRUNKLINE_OIDC_CLIENT_ID: register this console with the provider",
    ]);
  }
  if (roles === undefined) {
    throw new ConfigFailure([
      "TRUNKLINE_OIDC_ISSUER lets nobody in: name who is what in TRUNKLINE_OIDC_ROLES, such as ops=admin,*=viewer",
    ]);
  }
  return { issuer, clientId, clientSecret: given.TRUNKLINE_OIDC_CLIENT_SECRET, claim, roles };
}

function hostNameOf(origin: string | undefined): readonly string[] {
  return origin === undefined ? [] : [new URL(origin).hostname];
}

export type GatewayConfig = ReturnType<typeof gatewayConfig>;

/** The address of the public port, and true if it serves only trusted proxies and this host. */
interface PublicPort {
  readonly host: string;
  readonly onlyProxies: boolean;
}

const thisHost = "127.0.0.1";
const everyAddress = "0.0.0.0";

/**
 * Decides where the public port listens. With a public URL it listens for other hosts only if it has a certificate, or
 * if they are proxies that have one.
 */
function publicPort(given: z.output<typeof settings>): PublicPort {
  const { TRUNKLINE_HOST: chosen, TRUNKLINE_PUBLIC_URL: publicUrl, TRUNKLINE_TLS_CERT: certificate } = given;
  if (publicUrl === undefined || publicUrl.startsWith("http:")) return { host: chosen ?? thisHost, onlyProxies: false };
  if (certificate !== undefined) return { host: chosen ?? everyAddress, onlyProxies: false };
  const { TRUNKLINE_TRUSTED_PROXIES: proxies } = given;
  const isProxyElsewhere = proxies.some((each) => !isThisHost(each));
  const host = chosen ?? (isProxyElsewhere ? everyAddress : thisHost);
  if (isThisHost(host)) return { host, onlyProxies: false };
  if (proxies.length > 0) return { host, onlyProxies: true };
  throw new ConfigFailure([
    `TRUNKLINE_HOST (${host}) opens the port of ${publicUrl} to other hosts in clear text: set TRUNKLINE_TLS_CERT and TRUNKLINE_TLS_KEY, or name the proxy that has the certificate in TRUNKLINE_TRUSTED_PROXIES`,
  ]);
}

/** Returns true for an address of this host alone, and for a network of such addresses. */
function isThisHost(listed: string): boolean {
  const [address = ""] = listed.split("/");
  return isLoopback(isIPv6(address) ? `[${address}]` : address);
}

/** Says why the public URL leads nowhere yet, when the port listens on this host only. */
export function unreachedUrl(
  publicUrl: string | undefined,
  { host, port }: { readonly host: string; readonly port: number },
) {
  if (publicUrl === undefined || publicUrl.startsWith("http:") || !isThisHost(host)) return undefined;
  return `this process listens on ${host}:${port} only: let a proxy on this host pass ${publicUrl} on to it, or set TRUNKLINE_TLS_CERT and TRUNKLINE_TLS_KEY, or name a proxy on another host in TRUNKLINE_TRUSTED_PROXIES`;
}
