import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { readOwnFile } from "#shared/process/own-files.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { fileAt, type Fixed, pageHeaders, serveFixed } from "../http/serve-fixed.ts";

/** Each URL is written out, so that the package gets the file. The script is bundled there. */
const page = new URL("../../console/page.html", import.meta.url);
const consoleScript = new URL("../../console/main.tsx", import.meta.url);
/** The script of the page for members, at the public port. */
export const memberScript = new URL("../../console/members.tsx", import.meta.url);
const files = {
  "console.css": new URL("../../console/console.css", import.meta.url),
  "icon.svg": new URL("../../console/icon.svg", import.meta.url),
};

/** The bundler, which only the sources have. Its URL is no literal, so that the package goes without it. */
const bundler = "../../console/bundle-console.ts";

/** Serves the console at the operations port. */
export function serveConsole(server: FastifyInstance): void {
  servePage(server, consoleScript);
  server.get("/", { exposeHeadRoute: false }, async (_, reply) => reply.redirect("/console", 302));
  refuseOtherMethods(server, "/", ["GET"]);
}

/**
 * Serves a static page with its script. It is readable without a session and knows nothing of the site. Every address below
 * `/console` gets it, and the script reads the rest of the address.
 */
export function servePage(server: FastifyInstance, script: URL): void {
  const shell: Fixed = { ...fileAt(page), headers: { ...pageHeaders, "cross-origin-opener-policy": "same-origin" } };
  for (const [name, file] of Object.entries(files)) serveFixed(server, `/console/${name}`, fileAt(file));
  serveFixed(server, "/console/console.js", { type: "text/javascript; charset=utf-8", read: () => readScript(script) });
  for (const url of ["/console", "/console/*"]) serveFixed(server, url, shell);
}

async function readScript(script: URL): Promise<Buffer> {
  if (!script.pathname.endsWith(".tsx")) return readOwnFile(script);
  const { bundleConsole } = (await import(new URL(bundler, import.meta.url).href)) as Bundler;
  return Buffer.from((await bundleConsole(fileURLToPath(script))).code);
}

/** The module of the bundler, as far as it is used here. */
interface Bundler {
  readonly bundleConsole: (entry: string) => Promise<{ readonly code: string }>;
}
