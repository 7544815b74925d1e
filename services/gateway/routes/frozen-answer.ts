import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";

/** An answer that is the same for all clients that use the same host name, until the process ends. */
export interface FrozenAnswer {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
}

export function freezeAnswer(text: string, type: string): FrozenAnswer {
  const bytes = Buffer.from(text);
  return { bytes, type, etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"` };
}

/**
 * Sends the answer, or a 304 if the client already has it. Caches may keep the answer, and must revalidate it each
 * time.
 */
export function sendFrozen(request: FastifyRequest, reply: FastifyReply, answer: FrozenAnswer): FastifyReply {
  const { bytes, type, etag } = answer;
  reply.headers({ etag, "cache-control": "no-cache" });
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  return reply.type(type).send(bytes);
}
