import type { FastifyInstance } from "fastify";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { publicDocument } from "../../services/gateway/reference/public-document.ts";
import { getDocs } from "../../services/gateway/routes/get-docs.ts";
import { getOpenApi } from "../../services/gateway/routes/get-openapi.ts";
import { createServer } from "../../services/gateway/server.ts";

const limit = { bodyBytesMax: 1_024, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" };
const log = createLog({ level: "silent", name: "gateway", write: () => undefined });

let server: FastifyInstance;
beforeEach(() => {
  const document = publicDocument(limit);
  server = createServer({ log, ...limit, draining: () => false });
  getOpenApi(server, document);
  getDocs(server, document);
  onTestFinished(() => server.close());
});

describe.each([
  ["/openapi.json", "application/json; charset=utf-8"],
  ["/docs", "text/html; charset=utf-8"],
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

describe("the root of the public port", () => {
  test.each(["GET", "HEAD"] as const)("leads a %s to /docs, without a key", async (method) => {
    const led = await server.inject({ method, url: "/?from=a-bookmark" });
    expect([led.statusCode, led.headers.location, led.body]).toEqual([302, "/docs", ""]);
    expect(led.headers["x-request-id"]).toMatch(/^req_/);
  });

  test("stays an unknown URL for every other method", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"] as const) {
      expect((await server.inject({ method, url: "/" })).json()).toMatchObject({ error: { code: "unknown_url" } });
    }
  });
});

describe("the page", () => {
  const baseUrlFor = async (headers: Record<string, string>): Promise<string | undefined> => {
    const { body } = await server.inject({ method: "GET", url: "/docs", headers });
    return /<code data-base>([^<]*)<\/code>/.exec(body)?.[1];
  };

  test("names the gateway as its reader does", async () => {
    expect(await baseUrlFor({ host: "llm.example:8443" })).toBe("http://llm.example:8443/v1");
    expect(await baseUrlFor({ host: "LLM.example" })).toBe("http://llm.example/v1");
    expect(await baseUrlFor({ host: "[::1]:8080" })).toBe("http://[::1]:8080/v1");
  });

  test("repeats no name that could be a command", async () => {
    for (const host of ["$(reboot)", "a;reboot", "a'b", "a&b", "a!b"]) {
      expect(await baseUrlFor({ host })).toBe("http://localhost/v1");
    }
  });

  test("may run and show nothing but its own, and be framed by nobody", async () => {
    const { headers } = await server.inject({ method: "GET", url: "/docs" });
    expect(headers["content-security-policy"]).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-/,
    );
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers).toMatchObject({ "referrer-policy": "no-referrer" });
  });
});
