import type { ServerResponse } from "node:http";
import fastify from "fastify";
import { KnownKeys } from "./known-key.ts";

const usualBodyBytesMax = 64 * 1024 * 1024;
/** Thousands of clients may come at once. */
const backlog = 4_096;

interface ChatServer {
  readonly port: number;
  /** Of the one key. */
  readonly digest: string;
  readonly bodyBytesMax?: number;
  readonly pass: (body: Buffer, response: ServerResponse) => void;
}

/**
 * The least that any gateway does with a chat in Node: one key looked up, the body read and parsed once. What comes of a
 * request that is right is its bytes, and the response that the rest is to be written to.
 */
export async function serveChats({ port, digest, bodyBytesMax = usualBodyBytesMax, pass }: ChatServer): Promise<void> {
  const keys = new KnownKeys(digest);
  const app = fastify({ bodyLimit: bodyBytesMax });
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_, body, done) => done(null, body));
  app.post("/v1/chat/completions", (request, reply) => {
    if (keys.holder(request.headers.authorization) === undefined)
      return void reply.code(401).send({ error: "wrong key" });
    const body = request.body as Buffer;
    const { model } = JSON.parse(body.toString()) as { model?: unknown };
    if (typeof model !== "string") return void reply.code(400).send({ error: "no model" });
    reply.hijack();
    pass(body, reply.raw);
  });
  await app.listen({ port, host: "127.0.0.1", backlog });
}
