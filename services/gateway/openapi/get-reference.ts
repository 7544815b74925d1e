import { basename } from "node:path";
import type { FastifyInstance } from "fastify";
import { fileAt, pageHeaders, serveFixed } from "../http/serve-fixed.ts";

const page = new URL("./viewer/page.html", import.meta.url);

/** The files that the page at `/docs` refers to. Each URL is written out, so that the package gets the file. */
const pageFiles = [
  new URL("./viewer/page.css", import.meta.url),
  new URL("./viewer/page.js", import.meta.url),
  new URL(import.meta.resolve("swagger-ui-dist/swagger-ui.css")),
  new URL(import.meta.resolve("swagger-ui-dist/swagger-ui-bundle.js")),
  new URL(import.meta.resolve("swagger-ui-dist/favicon-32x32.png")),
];

/** The text by which clients of Ollama's recognise a server. */
const ollamaGreeting = "Ollama is running";

/**
 * Serves the OpenAPI document of the public API, and a page that shows it in Swagger UI. Neither holds a secret, so
 * clients can read them before they have a key.
 */
export function getReference(server: FastifyInstance, document: object): void {
  const json = Buffer.from(JSON.stringify(document));
  serveFixed(server, "/openapi.json", { type: "application/json; charset=utf-8", read: async () => json });
  serveFixed(server, "/docs", { ...fileAt(page), headers: pageHeaders });
  for (const file of pageFiles) serveFixed(server, `/docs/${basename(file.pathname)}`, fileAt(file));
  server.get("/", { exposeHeadRoute: false }, async (request, reply) => {
    reply.header("vary", "Accept");
    // A temporary redirect, so that no browser keeps it: a site may put a page of its own at `/`.
    if (request.headers.accept?.includes("text/html")) return reply.redirect("/docs", 302);
    return reply.type("text/plain; charset=utf-8").send(ollamaGreeting);
  });
  // Claude Code sees by these whether a server is there, before anything else and without a key.
  for (const url of ["/", "/api/hello"]) server.head(url, async (_, reply) => reply.send());
}
