import { createHash } from "node:crypto";
import { extname } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readOwnFile } from "#shared/process/own-files.ts";
import { refuseOtherMethods } from "./answer-faults.ts";

/** Content that stays the same until the process ends. */
export interface Fixed {
  readonly type: string;
  readonly read: () => Promise<Buffer>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The headers of a page that loads, runs and calls only this gateway. Nothing in it is a script or a style of its own. */
export const pageHeaders = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "referrer-policy": "no-referrer",
};

/** Returns the content of a file of the program, with its type. */
export function fileAt(file: URL): Fixed {
  return { type: types[extname(file.pathname)] ?? "application/octet-stream", read: async () => readOwnFile(file) };
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};

/**
 * Mounts one URL. The content is read, hashed and compressed at its first request, and kept. A failed read is tried
 * again at the next request.
 */
export function serveFixed(server: FastifyInstance, url: string, { type, read, headers = {} }: Fixed): void {
  let preparing: Promise<PreparedContent> | undefined;
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

interface PreparedContent {
  readonly plain: Buffer;
  /** Undefined for content that is compressed already. */
  readonly gzipped: Buffer | undefined;
  readonly hash: string;
}

async function prepare(read: () => Promise<Buffer>, type: string): Promise<PreparedContent> {
  const plain = await read();
  const hash = createHash("sha256").update(plain).digest("base64url").slice(0, 27);
  return { plain, gzipped: type === "application/gzip" ? undefined : await promisify(gzip)(plain), hash };
}

const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/;

/**
 * Sends the content, or a 304 if the client already has it. Caches may keep the content, and must revalidate it each
 * time.
 */
function send(request: FastifyRequest, reply: FastifyReply, { plain, gzipped, hash }: PreparedContent): FastifyReply {
  const compressed = acceptsGzip.test(String(request.headers["accept-encoding"])) ? gzipped : undefined;
  const etag = `"${hash}${compressed === undefined ? "" : "-gzip"}"`;
  const vary = [reply.getHeader("vary") ?? [], "accept-encoding"].flat().join(", ");
  reply.headers({ etag, "cache-control": "no-cache", vary });
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  return compressed === undefined ? reply.send(plain) : reply.header("content-encoding", "gzip").send(compressed);
}
