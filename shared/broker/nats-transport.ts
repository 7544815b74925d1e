import { type ConnectionOptions, NatsConnectionImpl, setTransportFactory } from "@nats-io/nats-core/internal";
import type { NatsConnection } from "@nats-io/nats-core";
import { nodeResolveHost, NodeTransport } from "@nats-io/transport-node/lib/node_transport.js";

/** Ends the socket of a failed connect. The library leaves it open, so a silent server would hold one for each attempt. */
class Transport extends NodeTransport {
  override close(error?: Error): Promise<void> {
    if (!this.connected) this.discard();
    return super.close(error);
  }
}

/** Connects by TCP, as `connect` of the library does. */
export function connectTcp(options: ConnectionOptions): Promise<NatsConnection> {
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
