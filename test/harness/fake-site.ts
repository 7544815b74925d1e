import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { newToken } from "#shared/protocol/identifiers.ts";
import {
  agentProof,
  challengePath,
  joinKey,
  joinLineText,
  pairPath,
  pairRequest,
  type PairRequest,
  provesSame,
  siteProof,
} from "#shared/protocol/pairing.ts";
import type { CertificateSettings } from "./self-signed.ts";

/** An error as a site tells it. */
export interface Refusal {
  readonly status: number;
  readonly code: string | null;
  readonly message: string;
}

/**
 * The routes of a site that machines join by, with mishaps that a real one does not have to order. It pairs every join
 * line that it made, any number of times, and remembers with which key.
 */
export class FakeSite implements AsyncDisposable {
  readonly id = newToken();
  readonly origin: string;
  /** All requests to pair, in their order. */
  readonly requests: PairRequest[] = [];
  /** Paths of all requests, also of those that were not answered. */
  readonly paths: string[] = [];
  /** As many of the next requests to pair are heeded, and their answers are lost on the way. */
  answersLost = 0;
  /** As many of the next requests, whatever they ask, are answered so. */
  refusal: { readonly times: number; readonly as: Refusal } | undefined;
  /** True if the site does not know the secrets of its own join lines. */
  isImpostor = false;
  redirectsTo: string | undefined;
  readonly #joins = new Map<string, Buffer>();
  readonly #server: http.Server;

  private constructor(server: http.Server, origin: string) {
    this.#server = server;
    this.origin = origin;
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  static async start({ tls }: { readonly tls?: CertificateSettings } = {}): Promise<FakeSite> {
    const server = tls === undefined ? http.createServer() : https.createServer(readFiles(tls));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    return new FakeSite(server, `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`);
  }

  /** Makes a join line for this site. */
  joinLine({ origin = this.origin, ...pin }: { origin?: string; certificateSha256?: string } = {}): string {
    const secret = randomBytes(16);
    const id = newToken().slice(0, 12);
    this.#joins.set(id, joinKey(secret));
    return joinLineText({ origin, id, secret, ...pin });
  }

  /** Shows another certificate from the next connection on. */
  showCertificate(tls: CertificateSettings): void {
    this.#server.closeAllConnections();
    if (this.#server instanceof https.Server) this.#server.setSecureContext(readFiles(tls));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    this.paths.push(request.url ?? "");
    const tell = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (this.redirectsTo !== undefined) {
      response.writeHead(308, { location: this.redirectsTo }).end();
      return;
    }
    const { refusal } = this;
    if (refusal !== undefined && refusal.times > 0) {
      this.refusal = { ...refusal, times: refusal.times - 1 };
      tell(refusal.as.status, {
        error: { message: refusal.as.message, type: "x", param: null, code: refusal.as.code },
      });
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (request.url === challengePath) tell(200, { site: this.id, challenge: newToken() });
    else if (request.url !== pairPath) response.writeHead(404).end("<h1>Not found</h1>");
    else this.#pair(pairRequest.parse(JSON.parse(Buffer.concat(chunks).toString())), request, tell);
  }

  #pair(asked: PairRequest, request: http.IncomingMessage, tell: (status: number, body: unknown) => void): void {
    this.requests.push(asked);
    const { join, public_key: publicKey, challenge, proof } = asked;
    const key = this.#joins.get(join);
    const proven = { join, publicKey, challenge, site: this.id };
    if (key === undefined || !provesSame(proof, agentProof(key, proven))) throw new Error("a proof that is none");
    if (this.answersLost > 0) {
      this.answersLost -= 1;
      request.socket.destroy();
      return;
    }
    const machine = "attic";
    const known = this.isImpostor ? randomBytes(32) : key;
    tell(200, { machine, site: this.id, proof: siteProof(known, { ...proven, machine }) });
  }
}

function readFiles({ TRUNKLINE_TLS_CERT: cert, TRUNKLINE_TLS_KEY: key }: CertificateSettings) {
  return { cert: readFileSync(cert), key: readFileSync(key) };
}
