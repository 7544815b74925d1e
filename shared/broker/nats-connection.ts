import { BlockList, isIP } from "node:net";

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

/** Delay between attempts to reach a lost server. Two sides of a restart reconnect within this time of each other. */
const waitMs = 100;
const jitterMs = 150;
/** Bounds of the backoff after a refused credential: the server will likely refuse it again. */
const refusedWaitMsMin = 500;
const refusedWaitMsMax = 30_000;

/** Computes the delay before the next attempt to connect. Jitter keeps a fleet from reconnecting all at once. */
export class ReconnectPace {
  readonly #random: () => number;
  #refusals = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Counts a refused credential. Returns true for the first refusal since the last successful connect. */
  refused(): boolean {
    this.#refusals += 1;
    return this.#refusals === 1;
  }

  connected(): void {
    this.#refusals = 0;
  }

  nextMs(): number {
    if (this.#refusals === 0) return waitMs + this.#random() * jitterMs;
    const grown = refusedWaitMsMin * 2 ** Math.min(this.#refusals - 1, 10);
    return Math.min(grown, refusedWaitMsMax) * (0.5 + this.#random() / 2);
  }
}
