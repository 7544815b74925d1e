import { createHash, X509Certificate } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { TLSSocket } from "node:tls";
import { z } from "zod";
import { unknownAuthority } from "../broker/nats-security.ts";
import type { Environment } from "../process/config.ts";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { tunnelPath } from "../protocol/pairing.ts";
import { jsonIn } from "../protocol/frame-payload.ts";

/**
 * The way from a machine to its site's HTTPS port, for pairing and for the tunnel. Certificates are always verified. A
 * site whose certificate no public authority signed is known by that certificate alone.
 */
export interface Site {
  /** The site's URL without a path. */
  readonly origin: string;
  /** Makes the connections: through a proxy of the environment, with the site's certificate verified. */
  readonly agent: http.Agent;
  /** True if one certificate alone is trusted. */
  readonly isPinned: boolean;
  /** True if the environment names a proxy, which this version of Node does not heed. */
  readonly ignoresProxy?: boolean;
}

interface SiteOptions {
  readonly origin: string;
  /** The site's pinned certificate in PEM form. Without it, the authorities that Node knows decide. */
  readonly certificate?: string | undefined;
  /** HTTPS_PROXY and NO_PROXY name the proxy of a company, in either case of letters. */
  readonly environment: Environment;
}

/** Timeout of one request, with its connection. */
const answerWaitMs = 10_000;
/** Largest answer that is read. */
const answerBytesMax = 64 * 1024;
/** Longest text of a site's error that is shown. */
const messageCharactersMax = 500;

/** Opens the way to a site. A site on this host is reached without a proxy. */
export function openSite({ origin, certificate, environment }: SiteOptions): Site {
  const isPinned = certificate !== undefined;
  if (origin.startsWith("http:")) return { origin, isPinned, agent: new http.Agent() };
  const pinned = isPinned ? trustOnly(certificate) : {};
  const { HTTPS_PROXY: proxy = environment["https_proxy"] } = environment;
  const ignoresProxy = Boolean(proxy) && !heedsProxies(process.versions.node);
  // Said here, since NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment changes Node's default.
  const agent = new https.Agent({ proxyEnv: environment, rejectUnauthorized: true, ...pinned });
  return { origin, isPinned, ignoresProxy, agent };
}

/** Returns true for a version of Node whose agents use the proxies of an environment. */
export function heedsProxies(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major === 22) return minor >= 21;
  return major > 24 || (major === 24 && minor >= 5);
}

const notThePinned = "ERR_NOT_THE_PINNED_CERTIFICATE";

/** Trusts one certificate, whatever names it holds: the private half of its key is the site's alone. */
function trustOnly(certificate: string): https.AgentOptions {
  const pinned = sha256Of(new X509Certificate(certificate).raw);
  return {
    ca: certificate,
    // Also for a certificate that another one signed.
    allowPartialTrustChain: true,
    checkServerIdentity: (_, { raw }) =>
      sha256Of(raw) === pinned ? undefined : Object.assign(new Error("another certificate"), { code: notThePinned }),
  };
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("base64url");
}

/**
 * Fetches the certificate of a site and compares it with the pin of a join line. Returns it in PEM form. The request
 * holds no secret, so it may go to an unknown party.
 */
export async function pinnedCertificate(
  { origin, environment }: SiteOptions,
  pin: { readonly path: string; readonly sha256: string },
): Promise<string> {
  const agent = new https.Agent({ proxyEnv: environment, rejectUnauthorized: false });
  const { socket } = await send({ origin, agent, isPinned: true }, { method: "GET", path: pin.path });
  const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  socket.destroy();
  if (certificate !== undefined && sha256Of(certificate.raw) === pin.sha256) return certificate.toString();
  throw new SiteFailure(
    `${origin} shows another certificate than the join line names: the site has a new one, or another server answers in its place. Make a new line on the site, and look who answers if that is refused too.`,
    { retry: false },
  );
}

/** A request that failed, explained to a person in one line that names the remedy. */
export class SiteFailure extends StartFailure {
  /** True if the same request may succeed in a moment. */
  readonly retry: boolean;
  /** The code of the site's error, if it is an answer of the site. */
  readonly code: string | undefined;

  constructor(message: string, how: { readonly retry: boolean; readonly code?: string; readonly cause?: unknown }) {
    super(how.retry ? exitCodes.unavailable : exitCodes.failed, message, { cause: how.cause });
    this.retry = how.retry;
    this.code = how.code;
  }
}

interface SiteRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
}

/** Sends a request and reads the JSON of its answer. Every other outcome is a `SiteFailure`. */
export async function askSite<Answer>(site: Site, request: SiteRequest, shape: z.ZodType<Answer>): Promise<Answer> {
  const response = await send(site, request);
  const text = await readText(response, site, request);
  const { statusCode: status = 0, headers } = response;
  if (status >= 300 && status < 400) {
    const { origin } = site;
    const { location } = headers;
    const to =
      location === undefined ? "elsewhere" : `to ${onOneLine(URL.parse(location, origin)?.origin ?? location)}`;
    throw new SiteFailure(
      `${origin} redirects ${to}, which no machine follows: start the site with the address that answers itself (--public).`,
      { retry: false },
    );
  }
  const answer = shape.safeParse(jsonIn(text));
  if (status === 200 && answer.success) return answer.data;
  const told = errorAnswer.safeParse(jsonIn(text));
  if (!told.success || told.data.error.code === "unknown_url") throw noTrunkline(site, { status, path: request.path });
  const { message, code } = told.data.error;
  const retry = passing.has(status) && headers["x-should-retry"] !== "false";
  throw new SiteFailure(onOneLine(message), { retry, ...(code !== null && { code }) });
}

/** Statuses of a site that is busy, restarts, or is not reached by the proxy in front of it. */
const passing = new Set([429, 502, 503, 504]);

const errorAnswer = z.object({ error: z.object({ message: z.string(), code: z.string().nullable() }) });

function send(site: Site, { method, path, body }: SiteRequest): Promise<http.IncomingMessage> {
  const url = new URL(path, site.origin);
  const { request } = url.protocol === "https:" ? https : http;
  const text = body === undefined ? "" : JSON.stringify(body);
  const headers = { accept: "application/json", ...(text !== "" && { "content-type": "application/json" }) };
  const signal = AbortSignal.timeout(answerWaitMs);
  return new Promise((resolve, reject) => {
    request(url, { method, agent: site.agent, headers, signal }, resolve)
      .on("error", (error) => reject(whyNotReached(error, site)))
      .end(text);
  });
}

async function readText(response: http.IncomingMessage, site: Site, { path }: SiteRequest): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response) {
      bytes += chunk.byteLength;
      if (bytes > answerBytesMax) throw noTrunkline(site, { status: response.statusCode ?? 0, path });
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof SiteFailure ? error : whyNotReached(error, site);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function noTrunkline(
  { origin }: Site,
  { status, path }: { readonly status: number; readonly path: string },
): SiteFailure {
  const [does, part, passed] = path.startsWith(tunnelPath)
    ? ["takes machines", "runs a version with pairing", tunnelPath]
    : ["gives its members keys", "has sign-in for members", "/console"];
  return new SiteFailure(
    `${origin} does not answer as a Trunkline site that ${does} (HTTP ${status}): check the address, that the site ${part}, and that its proxy passes ${passed} on.`,
    { retry: passing.has(status) },
  );
}

/** Explains why a site was not reached. Only failures of the network pass by themselves. */
export function whyNotReached(error: unknown, { origin, isPinned, ignoresProxy }: Site): SiteFailure {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const failure = (message: string, retry = false): SiteFailure => new SiteFailure(message, { retry, cause: error });
  if (code === notThePinned || (isPinned && unknownAuthority.has(code))) {
    return failure(
      `${origin} shows another certificate than the pinned one: if the site has a new one, pair this machine anew with a line of the site.`,
    );
  }
  if (unknownAuthority.has(code)) {
    return failure(
      `${origin} has a certificate of an unknown authority (${code}): copy that authority's certificate to this host and name its file in NODE_EXTRA_CA_CERTS (Caddy's \`tls internal\` keeps it in pki/authorities/local/root.crt), or set NODE_USE_SYSTEM_CA=1 if this host trusts it. A gateway that has the certificate itself (TRUNKLINE_TLS_CERT) puts its fingerprint into a new join line, and then that is enough.`,
    );
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return failure(
      `${origin} has a certificate for other names: use one of its names in the address, or give the site a certificate for this one.`,
    );
  }
  if (/CERT_(HAS_EXPIRED|NOT_YET_VALID)/.test(code)) {
    return failure(
      `${origin} has a certificate that is not valid today (${code}): renew it on the site, or set the clock of this host.`,
    );
  }
  if (code === "ERR_PROXY_TUNNEL") {
    const status = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 0;
    return failure(
      `The proxy of HTTPS_PROXY does not pass ${origin} on (HTTP ${status}): allow that host there, or put it into NO_PROXY.`,
      passing.has(status),
    );
  }
  if (/^(ERR_SSL|EPROTO)/.test(code)) {
    return failure(`${origin} does not speak TLS (${code}): check the port, and what listens there.`);
  }
  const reason = code === "ABORT_ERR" ? `no answer within ${answerWaitMs / 1_000} s` : code || String(error);
  const remedy = ignoresProxy
    ? `Node ${process.versions.node} does not heed HTTPS_PROXY, so run Node 22.21, 24.5 or newer`
    : "check the address and the network";
  return failure(`${origin} cannot be reached (${reason}): ${remedy}.`, true);
}

/** Makes a site's text fit for a terminal: one line, no control characters, and a bounded length. */
function onOneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").slice(0, messageCharactersMax);
}
