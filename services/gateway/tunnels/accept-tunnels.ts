import type { FastifyInstance, FastifyRequest } from "fastify";
import { WebSocketServer, type WebSocket } from "ws";
import { Fault } from "#shared/fault/fault.ts";
import { tunnelPath } from "#shared/protocol/pairing.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { KeyedCounts } from "../http/bound-uploads.ts";
import { networkOf } from "../http/request-state.ts";
import { type Upgrade, upgradeOf } from "../http/route-upgrades.ts";
import type { OpenTunnels } from "./open-tunnels.ts";
import { Tunnel, type TunnelParts } from "./tunnel.ts";

/** Sockets whose machine is not proven yet: of one network, and of all. A machine is proven in a round trip. */
export const unprovenPerNetworkMax = 64;
export const unprovenMax = 1_024;
/** The largest WebSocket message: the largest message of the broker, after the small ones of the same turn. */
export const frameBytesMax = 2 * 1024 * 1024;
/** Fragments of one message, and packets of one frame: both are kept until it is whole, and the smallest are of one byte. */
const piecesMax = 4_096;
/** Time that a closed socket has to take its last bytes and to answer. */
const closeWaitMs = 500;

const webSocketOptions = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: frameBytesMax,
  maxFragments: piecesMax,
  maxBufferedChunks: piecesMax,
  closeTimeout: closeWaitMs,
};

interface Dependencies extends TunnelParts {
  readonly open: OpenTunnels;
  /** True if this gateway can serve tunnels now. */
  readonly isReady: () => boolean;
}

/** Mounts the route at which agents open their tunnels. */
export function acceptTunnels(server: FastifyInstance, parts: Dependencies): void {
  const unproven = new UnprovenSockets();
  const webSockets = new WebSocketServer(webSocketOptions);
  // Answered by the route.
  webSockets.on("wsClientError", () => undefined);
  server.get(tunnelPath, (request, reply) => {
    const upgrade = upgradeOf(request.raw);
    if (upgrade === undefined) {
      reply.header("upgrade", "websocket").header("connection", "upgrade");
      throw new Fault("upgrade_required", {
        message: "Agents connect here by WebSocket. If this one did, a proxy in front does not pass WebSockets on.",
      });
    }
    if (!parts.isReady()) throw new Fault("backend_unavailable", { message: "This gateway has lost its broker." });
    let tunnel: Tunnel | undefined;
    const release = unproven.admit(networkOf(request.ip), () => tunnel?.refuse("unavailable"));
    webSockets.handleUpgrade(request.raw, upgrade.socket, upgrade.head, (socket) => {
      request.state.reporter = { facts: { outcome: "ok" } };
      reply.code(101).hijack();
      upgrade.take();
      tunnel = openTunnel({ socket, upgrade, request, release }, parts);
    });
    if (reply.sent) return;
    release();
    throw new Fault("bad_request", { message: "The request is no WebSocket handshake of version 13." });
  });
  refuseOtherMethods(server, tunnelPath, ["GET", "HEAD"]);
}

interface Opened {
  readonly socket: WebSocket;
  readonly upgrade: Upgrade;
  readonly request: FastifyRequest;
  readonly release: () => void;
}

function openTunnel({ socket, upgrade, request, release }: Opened, parts: Dependencies): Tunnel {
  const tunnel = new Tunnel({ socket, address: request.ip, release }, parts, parts.open);
  upgrade.socket.prependListener("data", (bytes: Buffer) => tunnel.bytesArrived(bytes));
  socket.on("message", (data, isBinary) => {
    if (isBinary && Buffer.isBuffer(data)) tunnel.receive(data);
    else tunnel.end("it sent text in place of bytes");
  });
  socket.on("error", ({ message }) => tunnel.end(`it broke the WebSocket protocol: ${message}`));
  socket.on("close", () => tunnel.socketClosed());
  return tunnel;
}

/**
 * Bounds the sockets whose machine is not proven yet. A network with too many gets no more. When those of all networks
 * are too many, the one that has waited longest gives way: a flood of silent sockets from many addresses must not keep
 * agents out.
 */
export class UnprovenSockets {
  readonly #byNetwork = new KeyedCounts();
  /** Functions that close each socket in favour of another, in the order of their coming. */
  readonly #all = new Set<() => void>();

  /** Admits a socket and returns the function that ends its time as an unproven one; or throws. */
  admit(network: string, giveWay: () => void): () => void {
    if (this.#byNetwork.of(network) >= unprovenPerNetworkMax) throw tooMany();
    const [oldest] = this.#all;
    if (this.#all.size >= unprovenMax) oldest?.();
    this.#all.add(giveWay);
    this.#byNetwork.add(network, 1);
    return () => {
      if (this.#all.delete(giveWay)) this.#byNetwork.add(network, -1);
    };
  }
}

function tooMany(): Fault {
  return new Fault("server_is_overloaded", {
    message: `${unprovenPerNetworkMax} connections of agents are still proving themselves (unprovenPerNetworkMax). Connect again in a moment.`,
  });
}
