import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { refuseOtherMethods } from "./answer-faults.ts";

/** Content that stays the same until the process ends. */
export interface Fixed {
  readonly type: string;
  readonly read: () => Promise<Buffer>;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Mounts one URL. The content is read, hashed and compressed at its first request, and kept. A failed read is tried
 * again at the next request.
 */
export function serveFixed(server: FastifyInstance, url: string, { type, read, headers = {} }: Fixed): void {
  let preparing: Promise<Prepared> | undefined;
  server.get(url, async (request, reply) => {
    preparing ??= prepare(read, type).catch((error: unknown) => {
      preparing = undefined;
      throw error;
    });
    const prepared = await preparing;
    return send(request, reply.type(type).headers(headers), prepared);
  });
  refuseOtherMethods(server, url, ["GET", "HEAD"]);
}

interface Prepared {
  readonly plain: Buffer;
  /** Undefined for content that is compressed already. */
  readonly gzipped: Buffer | undefined;
  readonly hash: string;
}

async function prepare(read: () => Promise<Buffer>, type: string): Promise<Prepared> {
  const plain = await read();
  const hash = createHash("sha256").update(plain).digest("base64url").slice(0, 27);
  return { plain, gzipped: type === "application/gzip" ? undefined : await promisify(gzip)(plain), hash };
}

const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/;

/**
 * Sends the content, or a 304 if the client already has it. Caches may keep the content, and must revalidate it each
 * time.
 */
function send(request: FastifyRequest, reply: FastifyReply, { plain, gzipped, hash }: Prepared): FastifyReply {
  const compressed = acceptsGzip.test(String(request.headers["accept-encoding"])) ? gzipped : undefined;
  const etag = `"${hash}${compressed === undefined ? "" : "-gzip"}"`;
  const vary = [reply.getHeader("vary") ?? [], "accept-encoding"].flat().join(", ");
  reply.headers({ etag, "cache-control": "no-cache", vary });
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  return compressed === undefined ? reply.send(plain) : reply.header("content-encoding", "gzip").send(compressed);
}
