import { lookup } from "node:dns/promises";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";
import { isIP } from "node:net";
import { untilAborted } from "#shared/process/clock.ts";

/** The ways to hosts that somebody else has named. The tests have ways of their own. */
export interface Reach {
  /** Returns all addresses of a host. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  readonly isPublic?: (address: string) => boolean;
  /** More options of each connection. */
  readonly connection?: Pick<RequestOptions, "ca" | "port">;
}

interface CheckedRequest extends Pick<Reach, "resolve" | "connection"> {
  readonly method?: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Returns the reason for which an address must not be connected to, such as `is not public`. */
  readonly refusalOf: (address: string) => string | undefined;
}

/**
 * Sends a request and returns the response when its head is there. The addresses of the host are looked up once, all of them
 * must be allowed, and the connection goes to one that was checked: a second answer of DNS changes nothing. Follows no redirect.
 */
export async function sendChecked(url: URL, request: CheckedRequest): Promise<IncomingMessage> {
  const { method = "GET", headers, body, signal, refusalOf, resolve = addressesOf, connection = {} } = request;
  const host = hostOf(url);
  const addresses = isIP(host) === 0 ? await untilAborted(signal, resolve(host)) : [host];
  if (addresses.length === 0) throw new AddressRefused("the host has no address");
  const [refusal] = addresses.flatMap((address) => refusalOf(address) ?? []);
  if (refusal !== undefined) throw new AddressRefused(`the host has an address that ${refusal}`);
  const { promise, resolve: answered, reject } = Promise.withResolvers<IncomingMessage>();
  const options = { method, headers, agent: false, signal, lookup: lookupOf(addresses), ...connection };
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  const isClosed = (): void => reject(new Error("the connection closed"));
  send(url, options).once("response", answered).once("error", reject).once("close", isClosed).end(body);
  return promise;
}

/** The message is Trunkline's own and names no address. */
export class AddressRefused extends Error {}

/** Returns the name or the address of a URL: an address of IPv6 without its brackets, a name without a final dot. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/** True if a list of hosts has this one. `*.example.com` is every host below `example.com`, and `*` every host. */
export function isListed(host: string, hosts: readonly string[]): boolean {
  return hosts.some((each) => each === "*" || each === host || (each.startsWith("*.") && host.endsWith(each.slice(1))));
}

async function addressesOf(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/** Returns a `lookup` for a connection that knows only the addresses that were checked. */
function lookupOf(addresses: readonly string[]): NonNullable<RequestOptions["lookup"]> {
  const checked = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, done) => {
    const [first] = checked;
    if (all || first === undefined) done(null, checked);
    else done(null, first.address, first.family);
  };
}
