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
const jitter = 1.5;
/** Upper bound of a delay that grows, before its jitter. */
const waitMsMax = 1_000;
/** Bounds of the backoff after a refused credential: the server will likely refuse it again. */
const refusedWaitMsMin = 500;
const refusedWaitMsMax = 30_000;

/** The usual time of a handshake on a thin line. */
const handshakeMs = 500;

/** Computes the delay before the next attempt to connect. Jitter keeps a fleet from reconnecting all at once. */
export class ReconnectPace {
  readonly #random: () => number;
  readonly #growth: number;
  #refusals = 0;
  #attempts = 0;
  #heldMs = 0;

  /** `growth` is the factor from each delay to the next, until a connect succeeds. */
  constructor(random: () => number, growth = 1) {
    this.#random = random;
    this.#growth = growth;
  }

  /** Counts a refused credential. Returns true for the first refusal since the last successful connect. */
  refused(): boolean {
    this.#refusals += 1;
    return this.#refusals === 1;
  }

  connected(): void {
    this.#refusals = 0;
    this.#attempts = 0;
    this.#heldMs = 0;
  }

  /**
   * Waits this long at least before each attempt, until one succeeds: the other side told the time. The client counts a
   * delay from the start of the refused attempt, so the time of its handshake is added.
   */
  hold(ms: number): void {
    this.#heldMs = Math.min(ms + handshakeMs, refusedWaitMsMax);
  }

  nextMs(): number {
    return Math.max(this.#ownMs(), this.#heldMs);
  }

  #ownMs(): number {
    if (this.#refusals === 0) {
      const unjittered = Math.min(waitMs * this.#growth ** this.#attempts, waitMsMax);
      this.#attempts += 1;
      return unjittered * (1 + this.#random() * jitter);
    }
    const grown = refusedWaitMsMin * 2 ** Math.min(this.#refusals - 1, 10);
    return Math.min(grown, refusedWaitMsMax) * (0.5 + this.#random() / 2);
  }
}
