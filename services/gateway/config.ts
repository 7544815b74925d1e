import { isIPv6 } from "node:net";
import { z } from "zod";
import { currencySetting } from "#shared/money/currency-setting.ts";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import {
  commaList,
  ConfigFailure,
  defaultPorts,
  natsSecurityOf,
  natsUrl,
  networkList,
  onOff,
  portNumber,
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
import { type GivenRole, givenRoles, type OpenIdSettings } from "./operations/open-id.ts";
import { type MediaPrices, mediaUnits } from "./apis/media/media-price.ts";
import { crossOrigins } from "./http/cross-origin.ts";
import { tracingSettings, unhonouredOtel } from "./trace-settings.ts";
import { showSettings } from "./show-settings.ts";

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

/** Names of hosts, also of this network, and addresses. */
const alertHosts = hostList(
  (names) => names.every((name) => isIPv6(name) || /^(?:\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*)$/.test(name)),
  "must be names of hosts such as ntfy.lan or *.example.com, or addresses, with commas between, or * for any",
);

const mib = 1024 * 1024;

/** Values of a claim with their roles, such as `ops=admin,night=operator,*=viewer`. */
const claimRoles = z.string().transform(
  (text, context) =>
    new Map(
      text.split(",").map((rule): [string, GivenRole] => {
        const at = rule.lastIndexOf("=");
        const value = rule.slice(0, Math.max(at, 0)).trim();
        const role = givenRoles.find((each) => each === rule.slice(at + 1).trim());
        if (role === undefined || value === "") {
          const message =
            "must be values of the claim with member, viewer, operator or admin, such as ops=admin,*=member";
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
    ...keyStoreSettings.shape,
    ...currencySetting,
    ...tracingSettings,
    /** Seed of the account's signing key, with which gateways make users of NATS for machines. */
    natsSigningKey: secret(
      z
        .string()
        .regex(/^SA[A-Z2-7]{56}$/, "must be a signing key of an account: machines.seed of `trunkline nats init`")
        .optional(),
    ),
    /** Credentials file of a user of NATS' system account that may receive connection events. */
    natsSystemCreds: z.string().optional(),
    /** URL with a user of NATS' system account that may receive connection events. */
    natsSystemUrl: secret(natsUrl.optional()),
    /** The URL by which clients and machines reach the public port. */
    publicUrl: publicOrigin.optional(),
    host: z.string().optional(),
    port: portNumber.default(defaultPorts.public),
    operationsHost: z.string().default("127.0.0.1"),
    operationsPort: portNumber.default(defaultPorts.operations),
    operationsTlsCert: z.string().optional(),
    operationsTlsKey: z.string().optional(),
    /** Host names that the operations port accepts, besides addresses and names without a dot. */
    operationsHosts: hostNames.default([]),
    /** The address of the console behind a proxy. Its name is accepted in the Host header. */
    consoleUrl: publicOrigin.optional(),
    /** Sign-in to the console by OpenID Connect. */
    oidcIssuer: z.url({ protocol: /^https?$/ }).optional(),
    oidcClientId: z.string().optional(),
    oidcClientSecret: secret(z.string().optional()),
    /** The claim that decides a person's role, and the roles of its values. */
    oidcClaim: z.string().min(1).default("groups"),
    oidcRoles: claimRoles.optional(),
    /**
     * Token that a request for the metrics must send. Without it, every client that reaches the operations port may
     * read them.
     */
    metricsToken: secret(
      z
        .string()
        .regex(/^[!-~]{16,}$/, "must have at least 16 characters, none of them a space")
        .optional(),
    ),
    tlsCert: z.string().optional(),
    tlsKey: z.string().optional(),
    bodyBytesMax: wholeNumber(1, 64 * mib).default(32 * mib),
    /** Connections that each port of a gateway has open at once, and the most of them from one address. */
    connectionsMax: wholeNumber(1, 1_000_000).default(16_384),
    connectionsPerAddressMax: wholeNumber(1, 1_000_000).default(4_096),
    /** Time for which known keys stay usable while their store is away; 0 disables this. */
    keysAwayMs: wholeNumber(0, 3_600_000).default(60_000),
    /** Days for which the keys of a person work after the last sign-in. */
    memberDays: wholeNumber(1, 3_650).default(30),
    /** Records of ended requests that the store keeps, and for how many days; none with 0. */
    requestsMax: wholeNumber(0, 10_000_000).default(keptRequestsDefault.max),
    requestsDays: wholeNumber(1, 400).default(keptRequestsDefault.ms / dayMs),
    /** Time for which a stopping gateway keeps serving after it has reported that it is not ready. */
    graceMs: wholeNumber(0, 600_000).optional(),
    /** The wait of a request for a machine of a known model that is away; with 0 it fails at once. */
    waitMs: wholeNumber(0, 600_000).default(0),
    /** Origins of the web apps that may call from a browser; none by default. */
    corsOrigins: crossOrigins.default([]),
    /** Proxies whose report of a client's address is trusted. */
    trustedProxies: networkList.default([]),
    /** Hosts from which images are fetched; none by default. */
    imageHosts: imageHosts.default([]),
    /** Hosts of alert targets that may be private, without TLS and at any port; none by default. */
    alertHosts: alertHosts.default([]),
    /** The tokens that a second, character or image costs, where its server reports none. */
    mediaTokens: mediaPrices.default({}),
    /** `off`: an answer ends when its machine is lost, and no other machine goes on with it. */
    continue: onOff.default(true),
    /** `on`: the responses of all keys are stored, encrypted. Otherwise of those keys whose record says so. */
    storeResponses: onOff.default(false),
    /** Days for which a response is stored. */
    storeResponsesDays: wholeNumber(1, storedDaysMax).default(storedDaysMax),
    /** Bytes of the stored responses of the site, and of one key. One response is always kept. */
    storeResponsesBytesMax: wholeNumber(mib, 2 ** 50).default(storedBytesDefault.site),
    storeResponsesBytesPerKeyMax: wholeNumber(mib, 2 ** 50).default(storedBytesDefault.key),
    /** `on`: the content of requests is kept for keys whose record says so. */
    capture: onOff.default(false),
    /** `shared` lets keys use what machines cached of each other's prompts; for a site of one tenant. */
    promptCache: z.enum(["per-key", "shared"]).default("per-key"),
  })
  .strict();

/** Reads the settings of a gateway from the environment, and adds what follows from them. */
export function gatewayConfig(environment: Environment) {
  const given = readConfig(settings, environment);
  const { operationsHost, consoleUrl, requestsMax, requestsDays } = given;
  return Object.freeze({
    ...given,
    shownSettings: showSettings(settings, environment, given),
    natsSecurity: natsSecurityOf(given),
    ...publicPort(given),
    operationsTls: { tlsCert: given.operationsTlsCert, tlsKey: given.operationsTlsKey },
    operationsNames: [operationsHost, ...given.operationsHosts, ...hostNameOf(consoleUrl)],
    consoleUrl: consoleUrl && `${consoleUrl}/console`,
    ...signIns(given),
    memberMs: given.memberDays * dayMs,
    unhonoured: unhonouredOtel(environment),
    keptRequests: { max: requestsMax, ms: requestsDays * dayMs },
    storedResponses: {
      keptMs: given.storeResponsesDays * dayMs,
      keyBytesMax: given.storeResponsesBytesPerKeyMax,
      siteBytesMax: given.storeResponsesBytesMax,
    },
  });
}

type GatewaySettings = z.output<typeof settings>;

/** Returns how people sign in, and the URL of the port at which members do; undefined where none can. */
function signIns(given: GatewaySettings) {
  const openId = openIdSettings(given);
  const { publicUrl, tlsCert, trustedProxies } = given;
  if (openId === undefined || ![...openId.roles.values()].includes("member")) return { openId, memberUrl: undefined };
  const isEncrypted = tlsCert !== undefined || trustedProxies.length > 0;
  if (isEncrypted && publicUrl?.startsWith("https:") === true) return { openId, memberUrl: publicUrl };
  throw new ConfigFailure([
    "TRUNKLINE_OIDC_ROLES has the role member, and members sign in at the public port by TLS alone: set TRUNKLINE_PUBLIC_URL to an https URL, and TRUNKLINE_TLS_CERT and TRUNKLINE_TLS_KEY, or name the proxy that has the certificate in TRUNKLINE_TRUSTED_PROXIES",
  ]);
}

/** Returns how people sign in by OpenID Connect; undefined without an issuer. */
function openIdSettings(given: GatewaySettings): OpenIdSettings | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClaim: claim, oidcRoles: roles } = given;
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
  return { issuer, clientId, clientSecret: given.oidcClientSecret, claim, roles };
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
function publicPort({ host: chosen, publicUrl, tlsCert, trustedProxies: proxies }: GatewaySettings): PublicPort {
  if (publicUrl === undefined || publicUrl.startsWith("http:")) return { host: chosen ?? thisHost, onlyProxies: false };
  if (tlsCert !== undefined) return { host: chosen ?? everyAddress, onlyProxies: false };
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
