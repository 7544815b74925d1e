import type { IncomingHttpHeaders } from "node:http";
import { connect } from "@nats-io/transport-node";
import { Pool, type Dispatcher } from "undici";
import { afterTurn, cancelSubject, frame, jobSubject } from "./bare-wire.ts";

/** Run as `node bare-agent.ts <url of NATS> <port of the far end>`. */
const [servers = "", farEndPort] = process.argv.slice(2);

const upstream = new Pool(`http://127.0.0.1:${farEndPort}`, { headersTimeout: 0, bodyTimeout: 0 });
const headers = { "content-type": "application/json" };
const nats = await connect({ servers, noAsyncTraces: true });
const left = new Error("the client left");
const jobs = new Map<string, Job>();

class Job implements Dispatcher.DispatchHandler {
  readonly #reply: string;
  controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #streams = false;
  #over: number | undefined;
  #pieces: Buffer[] = [];

  constructor(reply: string) {
    this.#reply = reply;
    jobs.set(reply, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, given: IncomingHttpHeaders): void {
    this.#status = status;
    this.#streams = given["content-type"]?.startsWith("text/event-stream") === true;
  }

  onResponseData(_: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#pieces.push(piece) === 1 && this.#streams) afterTurn(() => this.#send());
  }

  onResponseEnd(): void {
    this.#finish(this.#streams ? frame.end : frame.whole);
  }

  onResponseError(): void {
    this.#finish(frame.broken);
  }

  #finish(kind: number): void {
    jobs.delete(this.#reply);
    this.#over = kind;
    if (!this.#streams || this.#pieces.length === 0) afterTurn(() => this.#send());
  }

  #send(): void {
    const kind = this.#over ?? frame.data;
    const head = kind === frame.whole ? [kind, this.#status >> 8, this.#status & 0xff] : [kind];
    nats.publish(this.#reply, Buffer.concat([Buffer.from(head), ...this.#pieces]));
    this.#pieces = [];
  }
}

nats.subscribe(cancelSubject, { callback: (_, message) => jobs.get(message.string())?.controller?.abort(left) });
nats.subscribe(jobSubject, {
  callback(_, { data, reply = "" }) {
    const body = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    upstream.dispatch({ path: "/v1/chat/completions", method: "POST", headers, body }, new Job(reply));
  },
});
await nats.flush();
