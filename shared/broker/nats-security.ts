import { accessSync, constants, readFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { ServerInfo, TlsOptions, WsSocketFactory } from "@nats-io/nats-core";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";

export interface NatsUrl {
  readonly servers: string[];
  /** The host names and addresses of `servers`, without ports and brackets. */
  readonly hosts: readonly string[];
  readonly user?: string;
  readonly pass?: string;
  /** True for `ws://` and `wss://`, for which the client library has a separate connect function. */
  readonly websocket: boolean;
  /** True for `tls://` and `wss://`: the URL itself requires TLS. */
  readonly tls: boolean;
  /** True if every host is a loopback address or the name `localhost`. Other names are never resolved for this. */
  readonly onLoopback: boolean;
}

/** Splits a URL into servers and credentials. The client library ignores the credentials before the `@` of a URL. */
export function readNatsUrl(url: string): NatsUrl {
  const urls = url.split(",").map((part) => new URL(part.trim()));
  const [first] = urls;
  const servers = urls.map((each) => `${each.protocol}//${each.host}${each.pathname === "/" ? "" : each.pathname}`);
  const hosts = urls.map(({ hostname }) => hostname.replace(/^\[|\]$/g, "").toLowerCase());
  const uses = (...schemes: readonly string[]): boolean => urls.some(({ protocol }) => schemes.includes(protocol));
  return {
    servers,
    hosts,
    websocket: uses("ws:", "wss:"),
    tls: uses("tls:", "wss:"),
    onLoopback: hosts.every(isLoopback),
    ...(first?.username ? { user: decodeURIComponent(first.username) } : {}),
    ...(first?.password ? { pass: decodeURIComponent(first.password) } : {}),
  };
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

function isLoopback(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host === "localhost";
  return loopback.check(host, version === 6 ? "ipv6" : "ipv4");
}

/** Settings that protect the connection to NATS. The files are PEM files. */
export interface NatsSecurity {
  /**
   * The certificate authority that signed the server's certificate. Without it, Node's built-in authorities are used.
   */
  readonly caFile?: string | undefined;
  /** The text of such a file. */
  readonly ca?: string | undefined;
  /** This process's own certificate, for servers that verify their clients. */
  readonly certificateFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Allows a broker on another host without TLS or without authentication. For a laboratory only. */
  readonly insecure?: boolean | undefined;
}

/** `hasCredential` is true for a credential that is neither in the URL nor a certificate. */
type ProtectedNats = NatsSecurity & { readonly hasCredential?: boolean };

export interface NatsProtection {
  /** Undefined where clear text is allowed. The client library then still uses TLS with servers that offer it. */
  readonly tls: NodeTlsOptions | undefined;
  /** Describes a server that admits unauthenticated clients, as far as its INFO shows it. */
  openTo(info: ServerInfo | undefined): string | undefined;
}

const laboratory = "In a laboratory TRUNKLINE_NATS_INSECURE=true allows it.";

/** Returns the protection for a connection, or throws before anything is sent. */
export function protectNats(url: NatsUrl, settings: ProtectedNats): NatsProtection {
  const { caFile, ca, certificateFile, keyFile } = settings;
  const problem = problemOf(url, settings);
  if (problem !== undefined) throw new StartFailure(exitCodes.config, problem);
  const files = { TRUNKLINE_NATS_CA: caFile, TRUNKLINE_NATS_CERT: certificateFile, TRUNKLINE_NATS_KEY: keyFile };
  for (const [setting, file] of Object.entries(files)) if (file !== undefined) assertReadable(setting, file);
  const checked = !url.onLoopback && settings.insecure !== true;
  const forced = url.tls || checked || (caFile ?? ca ?? certificateFile) !== undefined;
  return {
    tls: forced ? tlsOptions(url, settings) : undefined,
    openTo(info) {
      const verified = certificateFile !== undefined && info?.tls_verify === true;
      if (!checked || info?.auth_required === true || verified) return undefined;
      return `NATS at ${url.servers.join(", ")} admits clients without a password: whoever reaches it can run jobs. Give it users, as infra/nats.conf does. ${laboratory}`;
    },
  };
}

function problemOf(url: NatsUrl, settings: ProtectedNats): string | undefined {
  const { caFile, certificateFile, keyFile, hasCredential, insecure } = settings;
  if ((certificateFile === undefined) !== (keyFile === undefined)) {
    return "TRUNKLINE_NATS_CERT and TRUNKLINE_NATS_KEY belong together: set both, or neither.";
  }
  const clearWebSocket = url.websocket && !url.tls;
  if (clearWebSocket && (caFile ?? certificateFile) !== undefined) {
    return "TRUNKLINE_NATS_CA and TRUNKLINE_NATS_CERT need TLS, and TRUNKLINE_NATS_URL begins with ws://: use wss://.";
  }
  if (url.onLoopback || insecure === true) return undefined;
  const broker = `TRUNKLINE_NATS_URL names a broker on another host (${url.hosts.join(", ")})`;
  if (clearWebSocket) return `${broker} in clear text: use wss:// instead of ws://. ${laboratory}`;
  if (hasCredential === true || (url.user ?? certificateFile) !== undefined) return undefined;
  return `${broker} without a credential: put user:password@ before the host, or set TRUNKLINE_NATS_CREDS. ${laboratory}`;
}

function assertReadable(setting: string, file: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (cause) {
    throw new StartFailure(
      exitCodes.config,
      `${setting}: the file ${file} cannot be read; name a PEM file that this user may read.`,
      { cause },
    );
  }
}

/** TLS options that the library passes to Node. It reads the files at each connect. */
type NodeTlsOptions = TlsOptions & { readonly checkServerIdentity: typeof checkServerIdentity };

function tlsOptions(url: NatsUrl, { caFile, ca, certificateFile, keyFile }: ProtectedNats): NodeTlsOptions {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(caFile === undefined ? {} : { caFile }),
    ...(certificateFile === undefined ? {} : { certFile: certificateFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
    checkServerIdentity: (_, certificate) => checkNames(url, certificate),
  };
}

/**
 * Accepts only a certificate for a host of the URL. Node's own name check proves nothing: it checks `localhost` for
 * every address, and for a server of a cluster it checks a name from a clear-text INFO.
 */
function checkNames({ hosts }: NatsUrl, certificate: PeerCertificate): Error | undefined {
  const misfits = hosts.map((host) => checkServerIdentity(host, certificate));
  return misfits.includes(undefined) ? undefined : misfits[0];
}

/**
 * Creates WebSockets to `wss://` with the configured files. Node's built-in WebSocket only trusts Node's own
 * authorities.
 */
export function webSocketFactory({ caFile, ca, certificateFile, keyFile }: NatsSecurity): WsSocketFactory | undefined {
  if ((caFile ?? ca ?? certificateFile) === undefined) return undefined;
  const read = (file: string | undefined): string | undefined => file && readFileSync(file, "utf8");
  return async (url) => {
    const { Agent, WebSocket } = await import("undici");
    // Read at each connect, so that a renewed certificate needs no restart.
    const dispatcher = new Agent({
      connect: { ca: ca ?? read(caFile), cert: read(certificateFile), key: read(keyFile) },
    });
    return { socket: new WebSocket(url, { dispatcher }), encrypted: true };
  };
}

export const unknownAuthority = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
]);

/** Explains a TLS failure; undefined for any other error. No credential was sent in these cases. */
export function tlsFailure(error: unknown, { servers }: NatsUrl): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const broker = `NATS at ${servers.join(", ")}`;
  const code = "code" in error ? String(error.code) : "";
  if (error.message.includes("does not support 'tls'")) {
    return `${broker} does not offer TLS, so no credential was sent to it: give the server a certificate (infra/nats-ca.sh makes one). A nats:// URL without TLS is for 127.0.0.1 only. ${laboratory}`;
  }
  if (unknownAuthority.has(code)) {
    return `${broker} has a certificate of an unknown authority (${code}): set TRUNKLINE_NATS_CA to the certificate of the authority that signed it.`;
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `${broker} has a certificate for other names (${error.message}): use a name of the certificate in TRUNKLINE_NATS_URL, or make one for this host (infra/nats-ca.sh).`;
  }
  if (/CERT_(HAS_EXPIRED|NOT_YET_VALID)/.test(code)) {
    return `${broker} has a certificate that is not valid today (${code}): make another one (infra/nats-ca.sh), or set this host's clock.`;
  }
  return undefined;
}
