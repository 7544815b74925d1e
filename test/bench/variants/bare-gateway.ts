import type { ServerResponse } from "node:http";
import { connect } from "@nats-io/transport-node";
import { afterTurn, cancelSubject, frame, jobSubject, replyPrefix } from "./bare-wire.ts";
import { serveChats } from "./chat-server.ts";

/** Run as `node bare-gateway.ts <port> <url of NATS> <digest of the key>`. */
const [port, servers = "", digest = ""] = process.argv.slice(2);

const nats = await connect({ servers, noAsyncTraces: true });
const requests = new Map<number, Request>();
let lastId = 0;

class Request {
  readonly #id = (lastId += 1);
  readonly #response: ServerResponse;
  #pieces: Buffer[] = [];
  #ends = false;

  constructor(body: Buffer, response: ServerResponse) {
    this.#response = response;
    requests.set(this.#id, this);
    response.once("close", () => {
      if (requests.delete(this.#id)) nats.publish(cancelSubject, replyPrefix + this.#id);
    });
    afterTurn(() => nats.publish(jobSubject, body, { reply: replyPrefix + this.#id }));
  }

  take(message: Buffer): void {
    const kind = message[0];
    if (kind !== frame.data) requests.delete(this.#id);
    if (kind === frame.broken) return void this.#response.destroy();
    if (kind === frame.whole) {
      const body = message.subarray(3);
      const head = { "content-type": "application/json", "content-length": body.length };
      return void this.#response.writeHead(message.readUInt16BE(1), head).end(body);
    }
    if (!this.#response.headersSent) this.#response.writeHead(200, { "content-type": "text/event-stream" });
    this.#ends = kind === frame.end;
    if (this.#pieces.push(message.subarray(1)) === 1) afterTurn(() => this.#write());
  }

  #write(): void {
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
const bodyBytesMax = nats.info?.max_payload ?? 0;
const pass = (body: Buffer, response: ServerResponse): Request => new Request(body, response);
await serveChats({ port: Number(port), digest, bodyBytesMax, pass });
