import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { unknownUrl } from "./answer-faults.ts";
import { headerLinesMax } from "./guard-edge.ts";

const anyOrigin = "*";

/** Matches scheme, host and port as browsers write them: no path and no pattern. Apps have schemes of their own. */
const originPattern = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\*]+$/;

/** Origins of the web apps that may call from a browser, separated by commas; `*` for any. */
export const crossOrigins: z.ZodType<readonly string[], string> = z
  .string()
  .transform((text) => text.split(",").map((each) => each.trim()))
  .refine(
    (origins) => origins.every(isOrigin) || (origins.length === 1 && origins[0] === anyOrigin),
    "must be origins such as https://app.example or http://localhost:5173, without a path and with commas between, or * alone for any",
  );

function isOrigin(text: string): boolean {
  if (!originPattern.test(text)) return false;
  if (!/^https?:/.test(text)) return true;
  return URL.canParse(text) && new URL(text).origin === text;
}

/** Paths that browsers may call from other origins; pages for people and probes of balancers are not among them. */
const openPaths = /^\/(?:(?:v1|api)(?:\/|$)|openapi\.json$)/;

/** The longest time that Chrome caches a preflight; other browsers cache it for longer. */
const permissionSeconds = 7_200;

const headerName = /^[\w!#$%&'*+.^`|~-]+$/;
const usualHeaders = ["authorization", "content-type", "x-api-key", "anthropic-version"];

/**
 * Lets browsers pass answers to web apps, errors and streams included, when the app's origin is in `origins`. Without
 * origins it changes nothing. A preflight is answered before a key is asked for, since browsers send none with it.
 * Cookies and passwords of a browser are never accepted, so an app may only do what its key may do.
 *
 * Pages of the internet get no permission to reach into a private network either.
 * `Access-Control-Request-Private-Network` gets no answer: browsers have come to ask their users that.
 *
 * Call it right after the server is made: its own hook must see requests before the keys are asked for.
 */
export function allowCrossOrigin(
  server: FastifyInstance,
  { origins, exposedHeaders }: { readonly origins: readonly string[]; readonly exposedHeaders: string[] },
): void {
  if (origins.length === 0) return;
  const allowed = (request: FastifyRequest): string | undefined => {
    const { origin } = request.headers;
    if (origin === undefined || !openPaths.test(request.state.path)) return undefined;
    if (origins.includes(anyOrigin)) return anyOrigin;
    return origins.includes(origin) ? origin : undefined;
  };
  const exposed = exposedHeaders.join(", ");
  const permit = (request: FastifyRequest, reply: FastifyReply): void => {
    const origin = allowed(request);
    // Also for the others: a cache must not give their answers to an app that may read them.
    reply.header("vary", "Origin");
    if (origin === undefined) return;
    reply.headers({ "access-control-allow-origin": origin, "access-control-expose-headers": exposed });
  };

  server.addHook("onRequest", (request, reply, done) => {
    permit(request, reply);
    const { "access-control-request-method": method, "access-control-request-headers": headers } = request.headers;
    // An OPTIONS request without `access-control-request-method` is no preflight, but a request like any other.
    if (request.method !== "OPTIONS" || method === undefined || allowed(request) === undefined) return done();
    reply.code(204).headers({
      "access-control-allow-methods": "GET, HEAD, POST, DELETE",
      "access-control-allow-headers": sendableHeaders(headers),
      "access-control-max-age": String(permissionSeconds),
      // Safari waits for a body without it.
      "content-length": "0",
    });
    return void reply.send();
  });
  // Without this route, a preflight of an unknown URL is refused before the hook.
  server.options("*", (request) => {
    throw unknownUrl(request);
  });
  // The server's own hooks refuse some requests before any other hook has seen them.
  server.addHook("onSend", async (request, reply) => {
    if (!reply.hasHeader("vary")) permit(request, reply);
  });
}

/**
 * Returns the headers that an app wants to send: official clients bring headers of their own with each version. The
 * list ends at `headerLinesMax`, since no request may have more.
 */
function sendableHeaders(asked: string | undefined): string {
  const names = (asked ?? "").split(",").map((name) => name.trim());
  const wellFormed = names.filter((name) => headerName.test(name)).slice(0, headerLinesMax);
  return (wellFormed.length === 0 ? usualHeaders : wellFormed).join(", ");
}
