import { isIPv6 } from "node:net";
import { ConfigFailure } from "#shared/process/config.ts";
import { isLoopback } from "#shared/protocol/pairing.ts";

interface PublicPortSettings {
  readonly TRUNKLINE_PUBLIC_URL?: string | undefined;
  readonly TRUNKLINE_HOST?: string | undefined;
  readonly TRUNKLINE_TLS_CERT?: string | undefined;
  readonly TRUNKLINE_TRUSTED_PROXIES: readonly string[];
}

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
export function publicPort(settings: PublicPortSettings): PublicPort {
  const { TRUNKLINE_HOST: chosen, TRUNKLINE_PUBLIC_URL: publicUrl, TRUNKLINE_TLS_CERT: certificate } = settings;
  if (publicUrl === undefined || publicUrl.startsWith("http:")) return { host: chosen ?? thisHost, onlyProxies: false };
  if (certificate !== undefined) return { host: chosen ?? everyAddress, onlyProxies: false };
  const { TRUNKLINE_TRUSTED_PROXIES: proxies } = settings;
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
