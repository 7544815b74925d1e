import { BlockList, isIPv6, type Server, type Socket } from "node:net";
import type { Clock } from "#shared/process/clock.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import { networkOf } from "./client-request.ts";

/** The limit that a new connection exceeds: the one for all connections, or the one for its address. */
export type ConnectionBound = "total" | "address";

export interface ConnectionBounds {
  /** Connections that a server has open at once. */
  readonly connectionsMax: number;
  /** Open connections of one address. This host and trusted proxies carry many clients, and have no such limit. */
  readonly connectionsPerAddressMax: number;
}

/** Closes new connections above a limit at once. The log names the setting of the limit. */
export function limitConnections(
  server: Server,
  bounds: ConnectionBounds,
  means: {
    readonly trustedProxies: readonly string[];
    readonly clock: Pick<Clock, "now">;
    readonly log: Pick<Log, "warn">;
    readonly meter?: { connectionClosed(bound: ConnectionBound): void } | undefined;
  },
): void {
  const { connectionsMax, connectionsPerAddressMax } = bounds;
  const throttle = new LogThrottle(means.clock);
  const unbound = networks(["127.0.0.0/8", "::1", ...means.trustedProxies]);
  const openFrom = new Map<string, number>();
  const refuse = (bound: ConnectionBound, message: string): void => {
    means.meter?.connectionClosed(bound);
    if (throttle.isDue(bound)) means.log.warn({ bound }, message);
  };

  server.maxConnections = connectionsMax;
  server.on("drop", () => {
    refuse("total", `new connections are closed: ${connectionsMax} are open (TRUNKLINE_CONNECTIONS_MAX)`);
  });
  server.on("connection", (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || unbound.check(remoteAddress, isIPv6(remoteAddress) ? "ipv6" : "ipv4")) return;
    const network = networkOf(remoteAddress);
    const open = (openFrom.get(network) ?? 0) + 1;
    openFrom.set(network, open);
    socket.once("close", () => {
      const others = (openFrom.get(network) ?? 1) - 1;
      if (others > 0) openFrom.set(network, others);
      else openFrom.delete(network);
    });
    if (open <= connectionsPerAddressMax) return;
    refuse(
      "address",
      `new connections of one address are closed: it has ${connectionsPerAddressMax} open (TRUNKLINE_CONNECTIONS_PER_ADDRESS_MAX); a proxy in front belongs into TRUNKLINE_TRUSTED_PROXIES`,
    );
    socket.destroy();
  });
}

function networks(listed: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of listed) {
    const [address = "", bits] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}
