import { runInNewContext } from "node:vm";
import { gunzipSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { type OpenApiDocument, publicDocument } from "../../services/gateway/openapi/public-document.ts";
import { getReference } from "../../services/gateway/openapi/get-reference.ts";
import { createServer } from "../../services/gateway/server.ts";

const limit = { bodyBytesMax: 1_024, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" };
const log = createLog({ level: "silent", name: "gateway", write: () => undefined });

let server: FastifyInstance;
beforeEach(() => {
  server = createServer({ log, ...limit });
  getReference(server, publicDocument(limit));
  onTestFinished(() => server.close());
});

describe.each([
  ["/openapi.json", "application/json; charset=utf-8"],
  ["/docs", "text/html; charset=utf-8"],
  ["/docs/page.css", "text/css; charset=utf-8"],
  ["/docs/page.js", "text/javascript; charset=utf-8"],
  ["/docs/swagger-ui.css", "text/css; charset=utf-8"],
  ["/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8"],
  ["/docs/favicon-32x32.png", "image/png"],
])("%s", (url, type) => {
  test("is told without a key, and only once to whoever keeps it", async () => {
    const first = await server.inject({ method: "GET", url });
    expect(first.statusCode).toBe(200);
    expect(first.headers["content-type"]).toBe(type);
    expect(first.headers["x-request-id"]).toMatch(/^req_/);
    const etag = String(first.headers.etag);
    expect(etag).toMatch(/^"[\w-]{20,}"$/);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await server.inject({ method: "GET", url, headers: { "if-none-match": known } });
      expect([again.statusCode, again.body]).toEqual([304, ""]);
    }
    const other = await server.inject({ method: "GET", url, headers: { "if-none-match": '"other"' } });
    expect([other.statusCode, other.body]).toEqual([200, first.body]);
  });

  test("is sent compressed to clients that can read that, as the same content", async () => {
    const plain = await server.inject({ method: "GET", url });
    const gzipped = await server.inject({ method: "GET", url, headers: { "accept-encoding": "br, gzip;q=0.8" } });
    expect(gzipped.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
    expect(gunzipSync(gzipped.rawPayload).equals(plain.rawPayload)).toBe(true);
    expect(gzipped.headers.etag).not.toBe(plain.headers.etag);
    for (const accepted of ["identity", "gzip;q=0", "br"]) {
      const { headers } = await server.inject({ method: "GET", url, headers: { "accept-encoding": accepted } });
      expect(headers["content-encoding"], accepted).toBeUndefined();
    }
  });

  test("says its length without itself, and has no other method", async () => {
    const whole = await server.inject({ method: "GET", url });
    const head = await server.inject({ method: "HEAD", url });
    expect([head.statusCode, head.body]).toEqual([200, ""]);
    expect(head.headers["content-length"]).toBe(whole.headers["content-length"]);
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"] as const) {
      const refused = await server.inject({ method, url });
      expect([refused.statusCode, refused.headers.allow]).toEqual([405, "GET, HEAD"]);
      expect(refused.json()).toMatchObject({ error: { code: "method_not_allowed" } });
    }
  });
});

test("the root of the public port leads a browser to /docs, without a key", async () => {
  const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  const led = await server.inject({ method: "GET", url: "/?from=a-bookmark", headers });
  expect([led.statusCode, led.headers.location, led.body]).toEqual([302, "/docs", ""]);
  expect(led.headers["x-request-id"]).toMatch(/^req_/);
});

test("the root of the public port says to a client of Ollama's that a server is there, without a key", async () => {
  for (const accept of ["", "*/*", "application/json"]) {
    const { statusCode, headers, body } = await server.inject({ method: "GET", url: "/", headers: { accept } });
    expect([statusCode, body]).toEqual([200, "Ollama is running"]);
    expect(headers).toMatchObject({ "content-type": "text/plain; charset=utf-8", vary: "Accept" });
  }
});

test("the root of the public port says to a HEAD that a gateway is there, without a key", async () => {
  const { statusCode, headers, body } = await server.inject({ method: "HEAD", url: "/" });
  expect([statusCode, headers.location, body]).toEqual([200, undefined, ""]);
});

test("the root of the public port stays an unknown URL for every other method", async () => {
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"] as const) {
    expect((await server.inject({ method, url: "/" })).json()).toMatchObject({ error: { code: "unknown_url" } });
  }
});

test("the page refers only to files that this gateway serves", async () => {
  const page = await server.inject({ method: "GET", url: "/docs" });
  const style = await server.inject({ method: "GET", url: "/docs/page.css" });
  const viewerStyle = await server.inject({ method: "GET", url: "/docs/swagger-ui.css" });
  const linked = [...page.body.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, to = ""]) => to);
  expect(linked.length).toBeGreaterThanOrEqual(5);
  for (const to of linked) {
    expect(to).toMatch(/^(?:docs\/)?[a-z0-9-]+\.[a-z]+$/);
    expect((await server.inject({ method: "GET", url: `/${to}` })).statusCode, to).toBe(200);
  }
  expect(page.body).not.toMatch(/<script>|<style>| on\w+="|style="/);
  for (const { body } of [style, viewerStyle]) {
    expect(body).not.toContain("@import");
    for (const [, to] of body.matchAll(/url\(\s*["']?([^"')]{0,9})/g)) expect(to).toMatch(/^data:/);
  }
});

test("the page may load, run and call nothing but this gateway, and be framed by nobody", async () => {
  const { headers } = await server.inject({ method: "GET", url: "/docs" });
  expect(headers["content-security-policy"]).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  expect(headers).toMatchObject({ "referrer-policy": "no-referrer" });
});

test("the page shows the document with the URL that its reader used, and with every error, limit and header", async () => {
  const document = (await server.inject({ method: "GET", url: "/openapi.json" })).json<OpenApiDocument>();
  const { spec, validatorUrl } = await shownAt("https://llm.example:8443/team/docs", document);
  const { description } = spec.info;
  expect(description).toContain("curl -N https://llm.example:8443/team/v1/chat/completions");
  expect(description).toContain('base_url="https://llm.example:8443/team/v1"');
  expect(JSON.stringify(spec)).not.toMatch(/gateway\.example|9007199254740991/);
  expect(description).toContain("Ask the operator of this service for an API key");
  for (const { code } of document["x-trunkline-errors"]) expect(description).toContain(`| ${code && `\`${code}\``} |`);
  for (const { name } of document["x-trunkline-limits"]) expect(description).toContain(`| \`${name}\` |`);
  for (const name of Object.keys(document.components.headers)) expect(description).toContain(`| \`${name}\` |`);
  expect(spec.paths).toEqual(document.paths);
  // Swagger UI would send the document to a validator on the internet.
  expect(validatorUrl).toBeNull();
});

interface Shown {
  readonly spec: OpenApiDocument;
  readonly validatorUrl: unknown;
}

/** Runs the page's script as a browser at `href` does, and returns the options that it gives to Swagger UI. */
async function shownAt(href: string, document: OpenApiDocument): Promise<Shown> {
  const { body: script } = await server.inject({ method: "GET", url: "/docs/page.js" });
  const fetched: string[] = [];
  const browser = {
    URL,
    location: { href },
    matchMedia: () => ({ matches: true, addEventListener: () => undefined }),
    document: { documentElement: { classList: { toggle: () => true } } },
    fetch: async (url: string) => {
      fetched.push(url);
      return Response.json(document);
    },
  };
  const shown = new Promise<Shown>((resolve) => Object.assign(browser, { SwaggerUIBundle: resolve }));
  await runInNewContext(`(async () => {${script}})()`, browser);
  expect(fetched).toEqual(["openapi.json"]);
  return shown;
}
