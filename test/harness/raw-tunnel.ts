import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { WebSocket } from "ws";
import { newToken } from "#shared/protocol/identifiers.ts";
import { signChallenge, tunnelPath, type MachineKeyPair } from "#shared/protocol/pairing.ts";
import { until } from "./until.ts";

/** The headers with which a client asks for a WebSocket. */
export const handshake = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": Buffer.alloc(16).toString("base64"),
};

/** Sends a request that asks for an upgrade, and returns the answer if there is none. */
export async function answerToUpgrade(
  url: string,
  {
    headers = handshake,
    method = "GET",
    body,
  }: { headers?: Record<string, string>; method?: string; body?: string } = {},
): Promise<{ readonly status: number | undefined; readonly headers: IncomingHttpHeaders; readonly body: string }> {
  const asked = request(url, { method, headers }).on("upgrade", (_, socket) => socket.destroy());
  asked.end(body);
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

/** What a tunnel tells first. */
interface Info {
  readonly nonce: string;
  readonly site: string;
}

/** A tunnel whose every byte a test chooses. */
export class RawTunnel implements AsyncDisposable {
  readonly socket: WebSocket;
  /** All that came, byte for character. */
  received = "";
  closed = false;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data: Buffer) => (this.received += data.toString("latin1")));
    socket.on("close", () => (this.closed = true));
    socket.on("error", () => undefined);
  }

  /** Connects and waits for the greeting. Throws the answer's status when the site refuses the upgrade. */
  static async open(origin: string): Promise<RawTunnel> {
    const socket = new WebSocket(`${origin.replace(/^http/, "ws")}${tunnelPath}`, { perMessageDeflate: false });
    const tunnel = new RawTunnel(socket);
    await once(socket, "open");
    await until(() => tunnel.received.includes("\r\n"), { what: "the greeting" });
    return tunnel;
  }

  get info(): Info {
    return JSON.parse(/^INFO (.*)\r\n/.exec(this.received)?.[1] ?? "{}") as Info;
  }

  /** The text of the `-ERR` that came last. */
  get error(): string | undefined {
    return this.received
      .match(/-ERR '.*'/g)
      ?.at(-1)
      ?.slice(6, -1);
  }

  send(...texts: readonly (string | Uint8Array)[]): void {
    this.socket.send(Buffer.concat(texts.map((each) => Buffer.from(each))));
  }

  /** Sends bytes below the WebSocket, such as frames that a client's library would not send. Resolves when they have left. */
  async sendBytes(bytes: Uint8Array): Promise<void> {
    const { _socket: socket } = this.socket as unknown as { readonly _socket: Socket };
    await new Promise((resolve) => void socket.write(bytes, resolve));
  }

  connect(claimed: { readonly nkey: string; readonly sig: string; readonly boot?: string }): void {
    this.send(`CONNECT ${JSON.stringify({ boot: newToken(), ...claimed })}\r\n`);
  }

  /** Proves the machine, and waits until the session is open. */
  async prove({ publicKey, seed }: MachineKeyPair, boot?: string): Promise<this> {
    const { site, nonce: challenge } = this.info;
    const sig = signChallenge(seed, { purpose: "connect", site, challenge });
    this.connect({ nkey: publicKey, sig, ...(boot === undefined ? {} : { boot }) });
    await this.carriedOut();
    return this;
  }

  /** Resolves when all that was sent before is carried out. */
  async carriedOut(): Promise<void> {
    const pongs = (): number => this.received.split("PONG\r\n").length;
    const before = pongs();
    this.send("PING\r\n");
    await until(() => pongs() > before || this.closed, { what: "the answer to a ping" });
  }

  async untilClosed(): Promise<void> {
    await until(() => this.closed, { what: "the tunnel to be closed" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.terminate();
  }
}
