import type { ServerResponse } from "node:http";
import { connect } from "@nats-io/transport-node";
import { cancelSubject, frame, jobSubject, replyPrefix, sendAfterTurn } from "./bare-wire.ts";
import { serveChats } from "./chat-server.ts";

/** Run as `node bare-gateway.ts <port> <url of NATS> <digest of the key>`. */
const [port, servers = "", digest = ""] = process.argv.slice(2);

const nats = await connect({ servers, noAsyncTraces: true });
const requests = new Map<number, Request>();
let lastId = 0;

class Request {
  readonly #id = (lastId += 1);
  readonly #response: ServerResponse;
  #body: Buffer | undefined;
  #pieces: Buffer[] = [];
  #ends = false;

  constructor(body: Buffer, response: ServerResponse) {
    this.#body = body;
    this.#response = response;
    requests.set(this.#id, this);
    response.once("close", () => {
      if (requests.delete(this.#id)) nats.publish(cancelSubject, replyPrefix + this.#id);
    });
    sendAfterTurn(this);
  }

  take(message: Buffer): void {
    const kind = message[0];
    if (kind === frame.whole || kind === frame.end || kind === frame.broken) requests.delete(this.#id);
    if (kind === frame.broken) return void this.#response.destroy();
    if (kind === frame.whole) {
      const body = message.subarray(3);
      const head = { "content-type": "application/json", "content-length": body.length };
      return void this.#response.writeHead(message.readUInt16BE(1), head).end(body);
    }
    if (!this.#response.headersSent) this.#response.writeHead(200, { "content-type": "text/event-stream" });
    this.#ends = kind === frame.end;
    if (this.#pieces.push(message.subarray(1)) === 1) sendAfterTurn(this);
  }

  send(): void {
    if (this.#body !== undefined) {
      nats.publish(jobSubject, this.#body, { reply: replyPrefix + this.#id });
      this.#body = undefined;
      return;
    }
    const [first, ...others] = this.#pieces;
    this.#pieces = [];
    const bytes = others.length === 0 ? first : Buffer.concat([first as Buffer, ...others]);
    if (this.#ends) this.#response.end(bytes);
    else this.#response.write(bytes);
  }
}

nats.subscribe(`${replyPrefix}*`, {
  callback(_, { subject, data }) {
    const request = requests.get(Number(subject.slice(replyPrefix.length)));
    request?.take(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
  },
});
await nats.flush();
await serveChats({
  port: Number(port),
  digest,
  bodyBytesMax: nats.info?.max_payload ?? 0,
  pass: (body, response) => void new Request(body, response),
});
