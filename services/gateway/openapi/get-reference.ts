import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import type { OpenApiDocument } from "./openapi-document.ts";

const own = join(import.meta.dirname, "viewer");
const viewer = dirname(fileURLToPath(import.meta.resolve("swagger-ui-dist/package.json")));

/** The files that the page at `/docs` refers to. */
const pageFiles = [
  join(own, "page.css"),
  join(own, "page.js"),
  join(viewer, "swagger-ui.css"),
  join(viewer, "swagger-ui-bundle.js"),
  join(viewer, "favicon-32x32.png"),
];

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".png": "image/png",
};

const pageHeaders = {
  // The page loads, runs and calls only this gateway.
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

/**
 * Serves the OpenAPI document of the public API, and a page that shows it in Swagger UI. Neither holds a secret, so
 * clients can read them before they have a key.
 */
export function getReference(server: FastifyInstance, document: OpenApiDocument): void {
  const json = Buffer.from(JSON.stringify(document));
  serveFixed(server, "/openapi.json", { type: "application/json; charset=utf-8", read: async () => json });
  serveFixed(server, "/docs", { ...fileAt(join(own, "page.html")), headers: pageHeaders });
  for (const path of pageFiles) serveFixed(server, `/docs/${basename(path)}`, fileAt(path));
  // A temporary redirect, so that no browser keeps it: a site may put a page of its own at `/`.
  server.get("/", async (_, reply) => reply.redirect("/docs", 302));
}

/** Content that stays the same until the process ends. */
interface Fixed {
  readonly type: string;
  readonly read: () => Promise<Buffer>;
  readonly headers?: Readonly<Record<string, string>>;
}

function fileAt(path: string): Fixed {
  return { type: types[extname(path)] ?? "application/octet-stream", read: () => readFile(path) };
}

/** Mounts one URL. The content is read, hashed and compressed at its first request, and kept. */
function serveFixed(server: FastifyInstance, url: string, { type, read, headers = {} }: Fixed): void {
  let prepared: Prepared | undefined;
  server.get(url, async (request, reply) => {
    prepared ??= await prepare(read);
    return send(request, reply.type(type).headers(headers), prepared);
  });
  refuseOtherMethods(server, url, ["GET", "HEAD"]);
}

interface Prepared {
  readonly plain: Buffer;
  readonly gzipped: Buffer;
  readonly hash: string;
}

async function prepare(read: () => Promise<Buffer>): Promise<Prepared> {
  const plain = await read();
  const hash = createHash("sha256").update(plain).digest("base64url").slice(0, 27);
  return { plain, gzipped: await promisify(gzip)(plain), hash };
}

const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/;

/**
 * Sends the content, or a 304 if the client already has it. Caches may keep the content, and must revalidate it each
 * time.
 */
function send(request: FastifyRequest, reply: FastifyReply, { plain, gzipped, hash }: Prepared): FastifyReply {
  const asGzip = acceptsGzip.test(String(request.headers["accept-encoding"]));
  const etag = `"${hash}${asGzip ? "-gzip" : ""}"`;
  const vary = [reply.getHeader("vary") ?? [], "accept-encoding"].flat().join(", ");
  reply.headers({ etag, "cache-control": "no-cache", vary });
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  return asGzip ? reply.header("content-encoding", "gzip").send(gzipped) : reply.send(plain);
}
