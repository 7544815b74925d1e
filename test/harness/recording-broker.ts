import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";

/** An address of this host that is not its loopback, as another host sees it; undefined on a host without a network. */
export function ownNetworkAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal, family }) => !internal && family === "IPv4")?.address;
}

/** A fake NATS server: it greets clients with a chosen INFO and records all that they send. */
export class RecordingBroker implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#greet(socket));
  readonly #sockets = new Set<Socket>();
  readonly #greeting: Record<string, unknown>;
  /** All bytes of all clients, byte for character. */
  received = "";
  /** So many came. */
  clients = 0;

  private constructor(greeting: Record<string, unknown>) {
    this.#greeting = greeting;
  }

  static async start(
    greeting: Record<string, unknown> = {},
    { host = "127.0.0.1", port = 0 }: { readonly host?: string | undefined; readonly port?: number } = {},
  ): Promise<RecordingBroker> {
    const broker = new RecordingBroker(greeting);
    broker.#server.listen(port, host);
    await once(broker.#server, "listening");
    return broker;
  }

  /** Host and port. */
  get place(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("the recording broker has ended");
    return `${address.address}:${address.port}`;
  }

  /** Ends the connections that there are; it takes new ones. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #greet(socket: Socket): void {
    this.clients += 1;
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => this.#sockets.delete(socket));
    socket.on("data", (bytes) => {
      const text = bytes.toString("latin1");
      this.received += text;
      for (const _ of text.matchAll(/PING\r\n/g)) socket.write("PONG\r\n");
    });
    const usual = { server_id: "recording", version: "2.12.0", proto: 1, headers: true, max_payload: 1_048_576 };
    socket.write(`INFO ${JSON.stringify({ ...usual, ...this.#greeting })}\r\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.hangUp();
    this.#server.close();
    await once(this.#server, "close");
  }
}
