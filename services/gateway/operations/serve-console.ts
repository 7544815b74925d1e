import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { readOwnFile } from "#shared/process/own-files.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { fileAt, type Fixed, pageHeaders, serveFixed } from "../http/serve-fixed.ts";

/** Each URL is written out, so that the package gets the file. The script is bundled there. */
const page = new URL("../../console/page.html", import.meta.url);
const script = new URL("../../console/main.tsx", import.meta.url);
const files = {
  "console.css": new URL("../../console/console.css", import.meta.url),
  "icon.svg": new URL("../../console/icon.svg", import.meta.url),
};

/** The bundler, which only the sources have. Its URL is no literal, so that the package goes without it. */
const bundler = "../../console/bundle-console.ts";

/**
 * Serves the console: a static page that is readable without a session and knows nothing of the site. Every address
 * below `/console` gets it, and the page itself reads the rest of the address.
 */
export function serveConsole(server: FastifyInstance): void {
  const shell: Fixed = { ...fileAt(page), headers: { ...pageHeaders, "cross-origin-opener-policy": "same-origin" } };
  for (const [name, file] of Object.entries(files)) serveFixed(server, `/console/${name}`, fileAt(file));
  serveFixed(server, "/console/console.js", { type: "text/javascript; charset=utf-8", read: readScript });
  for (const url of ["/console", "/console/*"]) serveFixed(server, url, shell);
  server.get("/", { exposeHeadRoute: false }, async (_, reply) => reply.redirect("/console", 302));
  refuseOtherMethods(server, "/", ["GET"]);
}

async function readScript(): Promise<Buffer> {
  if (basename(script.pathname) !== "main.tsx") return readOwnFile(script);
  const { bundleConsole } = (await import(new URL(bundler, import.meta.url).href)) as Bundler;
  return Buffer.from((await bundleConsole(fileURLToPath(script))).code);
}

/** The module of the bundler, as far as it is used here. */
interface Bundler {
  readonly bundleConsole: (entry: string) => Promise<{ readonly code: string }>;
}
