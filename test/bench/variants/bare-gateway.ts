import { hash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { connect } from "@nats-io/transport-node";
import fastify from "fastify";
import { afterTurn, cancelSubject, frame, jobSubject, replyPrefix } from "./bare-wire.ts";

/**
 * The least that a gateway in Node does with a chat: one key looked up, the body read and parsed once, and passed on.
 * Run as `node bare-gateway.ts <port> <url of NATS> <digest of the key>`.
 */
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

const holders = new Map([[digest, "bench"]]);
const app = fastify({ bodyLimit: nats.info?.max_payload ?? 0 });
app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_, body, done) => done(null, body));
app.post("/v1/chat/completions", (request, reply) => {
  const [, key = ""] = request.headers.authorization?.split("Bearer ") ?? [];
  if (holders.get(hash("sha256", key)) === undefined) return void reply.code(401).send({ error: "wrong key" });
  const body = request.body as Buffer;
  const { model } = JSON.parse(body.toString()) as { model?: unknown };
  if (typeof model !== "string") return void reply.code(400).send({ error: "no model" });
  reply.hijack();
  void new Request(body, reply.raw);
});
// Thousands of clients may connect at once.
await app.listen({ port: Number(port), host: "127.0.0.1", backlog: 4_096 });
