import { once } from "node:events";
import { Agent, createServer, get, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { until } from "./until.ts";

/** A gateway as a balancer knows it: where it serves, and where it says whether it is ready. */
export interface Balanced {
  /** With `/v1` at its end, as gateways tell it. */
  readonly baseUrl: string;
  readonly operationsUrl: string;
}

const pollMs = 100;
const pollTimeoutMs = 500;
/** One that is only slow to answer is not taken out at once: its requests would go to nobody. */
const unansweredMax = 3;
const readyWithinMs = 10_000;

/**
 * A balancer in front of several gateways, of the plainest kind that an operator might have: it asks each of them ten
 * times a second whether it is ready, gives new requests to those that are, in turn, and lets those under way finish. It
 * never sends a request twice, so whatever a gateway loses is seen. What it says itself has the code `balancer_…`.
 */
export class Balancer implements AsyncDisposable {
  readonly #server: Server;
  readonly #upstreams = new Map<string, Upstream>();
  #turn = 0;

  private constructor() {
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (from, to) => this.#pass(from, to));
  }

  static async before(gateways: readonly Balanced[]): Promise<Balancer> {
    const balancer = new Balancer();
    balancer.#server.listen(0, "127.0.0.1");
    await once(balancer.#server, "listening");
    await Promise.all(gateways.map((gateway) => balancer.add(gateway)));
    return balancer;
  }

  get baseUrl(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("the balancer has ended");
    return `http://127.0.0.1:${address.port}/v1`;
  }

  /** Resolves when it is ready and gets its share. */
  async add(gateway: Balanced): Promise<void> {
    const upstream = new Upstream(gateway);
    this.#upstreams.set(gateway.baseUrl, upstream);
    await until(() => upstream.ready, { what: `${gateway.baseUrl} to be ready`, timeoutMs: readyWithinMs });
  }

  /** For one whose process has ended. */
  remove({ baseUrl }: Balanced): void {
    this.#upstreams.get(baseUrl)?.close();
    this.#upstreams.delete(baseUrl);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const upstream of this.#upstreams.values()) upstream.close();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #pass(from: IncomingMessage, to: ServerResponse): void {
    const ready = [...this.#upstreams.values()].filter((upstream) => upstream.ready);
    const upstream = ready[this.#turn++ % Math.max(ready.length, 1)];
    if (upstream !== undefined) {
      upstream.pass(from, to);
      return;
    }
    const reasons = [...this.#upstreams.values()].map(({ whyNot }) => whyNot);
    const why = `no gateway is ready: ${reasons.join("; ")}`;
    refuse(to, { status: 503, code: "balancer_nobody_ready", why });
  }
}

/** One gateway, with connections to it that are kept for the next request for as long as it is ready. */
class Upstream {
  readonly #origin: string;
  readonly #readyUrl: string;
  readonly #agent = new Agent({ keepAlive: true });
  #polling: NodeJS.Timeout | undefined;
  #closed = false;
  #ready = false;
  #unanswered = 0;
  #whyNot = "it was not asked yet";

  constructor({ baseUrl, operationsUrl }: Balanced) {
    this.#origin = new URL(baseUrl).origin;
    this.#readyUrl = new URL("/readyz", operationsUrl).href;
    this.#poll();
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** What it last said, or was heard of it, when it was not ready. */
  get whyNot(): string {
    return this.#whyNot;
  }

  pass(from: IncomingMessage, to: ServerResponse): void {
    const { method, headers, url = "/" } = from;
    const passed = request(new URL(url, this.#origin), { method, headers, agent: this.#agent });
    passed.on("response", (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers);
      to.flushHeaders();
      answer.pipe(to);
      // One that breaks off must not look like one that ends.
      answer.once("close", () => {
        if (!answer.complete) to.destroy();
      });
    });
    passed.on("error", (error) => {
      if (to.headersSent) to.destroy();
      else refuse(to, { status: 502, code: "balancer_gateway_broke_off", why: error.message });
    });
    to.once("close", () => {
      if (!to.writableFinished) passed.destroy();
    });
    from.pipe(passed);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#polling);
    this.#ready = false;
    this.#agent.destroy();
  }

  #poll(): void {
    const asked = get(this.#readyUrl, { agent: false, timeout: pollTimeoutMs }, (answer) => {
      this.#unanswered = 0;
      this.#learn(answer.statusCode === 200);
      answer.setEncoding("utf8").on("data", (text: string) => {
        if (!this.#ready) this.#whyNot = text;
      });
    });
    let late = false;
    asked.on("timeout", () => {
      late = true;
      asked.destroy();
    });
    asked.on("error", (error) => {
      this.#unanswered += 1;
      this.#whyNot = late ? "it does not answer" : error.message;
      if (!late || this.#unanswered >= unansweredMax) this.#learn(false);
    });
    asked.once("close", () => {
      if (!this.#closed) this.#polling = setTimeout(() => this.#poll(), pollMs);
    });
  }

  #learn(ready: boolean): void {
    this.#ready = ready && !this.#closed;
    if (this.#ready) return;
    for (const idle of Object.values(this.#agent.freeSockets)) for (const socket of idle ?? []) socket.destroy();
  }
}

function refuse(to: ServerResponse, { status, code, why }: { status: number; code: string; why: string }): void {
  const body = JSON.stringify({ error: { message: `The balancer: ${why}.`, type: "balancer", param: null, code } });
  to.writeHead(status, { "content-type": "application/json" }).end(body);
}
