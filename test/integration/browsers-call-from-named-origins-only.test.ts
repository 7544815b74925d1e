import type { FastifyInstance, LightMyRequestResponse } from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { createLog } from "#shared/process/log.ts";
import { allowCrossOrigin } from "../../services/gateway/http/cross-origin.ts";
import { refuseOtherMethods } from "../../services/gateway/http/answer-faults.ts";
import { answerHeaders } from "../../services/gateway/openapi/public-headers.ts";
import { createServer } from "../../services/gateway/server.ts";

const app = "https://app.example";
const log = createLog({ level: "silent", name: "gateway", write: () => undefined });

/** Routes like the public ones, behind a hook that lets nobody in without a key. */
function serverFor(origins: readonly string[], { draining = false } = {}): FastifyInstance {
  const limit = { bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" };
  const server = createServer({ log, ...limit, closing: { begun: draining } });
  allowCrossOrigin(server, { origins, exposedHeaders: Object.keys(answerHeaders) });
  server.get("/healthz", async () => ({ status: "ok" }));
  server.get("/openapi.json", async () => ({}));
  refuseOtherMethods(server, "/openapi.json", ["GET", "HEAD"]);
  void server.register(
    async (v1) => {
      v1.addHook("onRequest", async (request) => {
        if (request.headers.authorization === undefined) throw new Fault("key_invalid", { message: "No key." });
      });
      v1.post("/chat/completions", async () => ({ choices: [] }));
    },
    { prefix: "/v1" },
  );
  refuseOtherMethods(server, "/v1/chat/completions", ["POST"]);
  onTestFinished(() => server.close());
  return server;
}

const chat = "/v1/chat/completions";
const headersOfTheSdk = "authorization,content-type,x-stainless-lang,x-stainless-os,x-stainless-retry-count";

function preflight(server: FastifyInstance, origin: string, more: Record<string, string> = {}, url = chat) {
  const asks = { "access-control-request-method": "POST", "access-control-request-headers": headersOfTheSdk };
  return server.inject({ method: "OPTIONS", url, headers: { origin, ...asks, ...more } });
}

function isAllowed({ headers }: LightMyRequestResponse): boolean {
  return Object.keys(headers).some((name) => name.startsWith("access-control-"));
}

test("a gateway with no origin named, as by default, answers as if there were no browsers", async () => {
  const server = serverFor([]);
  const answers = [
    await preflight(server, app),
    await server.inject({ method: "POST", url: chat, headers: { origin: app, authorization: "Bearer x" } }),
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([405, 200]);
  for (const answer of answers) {
    expect(isAllowed(answer)).toBe(false);
    expect(answer.headers.vary).toBeUndefined();
  }
});

interface Asked {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  readonly type: string;
  readonly key?: string;
  readonly payload?: string;
}

describe("with an origin named", () => {
  test("the preflight of a named origin is answered without a key, and lets the official client's headers through", async () => {
    const answer = await preflight(serverFor([app, "https://other.example"]), app);
    expect([answer.statusCode, answer.body]).toEqual([204, ""]);
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": app,
      "access-control-allow-methods": "GET, HEAD, POST, DELETE",
      "access-control-allow-headers": headersOfTheSdk.replaceAll(",", ", "),
      "access-control-max-age": "7200",
      vary: "Origin",
    });
    expect(answer.headers["access-control-allow-credentials"]).toBeUndefined();
    expect(answer.headers["x-request-id"]).toMatch(/^req_/);
  });

  test("a preflight lets only what can be the name of a header through, and no more than a request may have", async () => {
    const server = serverFor([app]);
    const allowed = async (asked: string): Promise<string> => {
      const answer = await preflight(server, app, { "access-control-request-headers": asked });
      expect(answer.statusCode).toBe(204);
      return String(answer.headers["access-control-allow-headers"]);
    };
    expect(await allowed("authorization, <script>, a b,x-ok")).toBe("authorization, x-ok");
    expect(await allowed("")).toBe("authorization, content-type, x-api-key, anthropic-version");
    const many = Array.from({ length: 300 }, (_, place) => `x-${place}`);
    expect((await allowed(many.join(","))).split(", ")).toHaveLength(100);
  });

  test("a page of a named origin may read the answer, and every header that is described", async () => {
    const { statusCode, headers } = await serverFor([app]).inject({
      method: "POST",
      url: chat,
      headers: { origin: app, authorization: "Bearer x" },
    });
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({ "access-control-allow-origin": app, vary: "Origin" });
    expect(String(headers["access-control-expose-headers"]).split(", ")).toEqual(Object.keys(answerHeaders));
  });

  test.each([
    ["without a key", 401, "key_invalid", { method: "POST", url: chat }],
    ["where nothing is", 404, "unknown_url", { method: "GET", url: "/v1/nothing" }],
    ["by another method", 405, "method_not_allowed", { method: "DELETE", url: chat }],
    ["with an odd type", 415, "unsupported_media_type", { method: "POST", url: chat, type: "text/plain", key: "x" }],
    ["too large", 413, "request_too_large", { method: "POST", url: chat, key: "x", payload: `"${"a".repeat(2_000)}"` }],
    ["whose URL could be read in two ways", 400, "bad_request", { method: "GET", url: "/v1/%00" }],
  ] as const)("a page of a named origin may read why it is refused %s", async (_why, status, code, asked) => {
    const { method, url, type, key, payload = "{}" } = { type: "application/json", ...asked } as Asked;
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const body = method === "POST" && { "content-type": type };
    const headers = { origin: app, ...authorization, ...body };
    const answer = await serverFor([app]).inject({ method, url, headers, ...(body && { payload }) });
    expect(answer.statusCode).toBe(status);
    expect(answer.json()).toMatchObject({ error: { code } });
    expect(answer.headers).toMatchObject({ "access-control-allow-origin": app, vary: "Origin" });
    expect(answer.headers["access-control-expose-headers"]).toContain("x-request-id");
  });

  test("a page of a named origin hears that the gateway stops", async () => {
    const answer = await serverFor([app], { draining: true }).inject({
      method: "GET",
      url: "/openapi.json",
      headers: { origin: app },
    });
    expect(answer.statusCode).toBe(503);
    expect(answer.headers["access-control-allow-origin"]).toBe(app);
  });

  test.each([
    "https://evil.example",
    "https://app.example.evil.example",
    "http://app.example",
    "null",
    "https://APP.example",
  ])("%s is no origin that was named", async (origin) => {
    const server = serverFor([app]);
    const refused = await preflight(server, origin);
    expect([refused.statusCode, refused.headers.allow]).toEqual([405, "POST"]);
    const answered = await server.inject({ method: "POST", url: chat, headers: { origin, authorization: "Bearer x" } });
    expect(answered.statusCode).toBe(200);
    for (const answer of [refused, answered]) {
      expect(isAllowed(answer)).toBe(false);
      // A cache must not give this answer to the pages that may read it.
      expect(answer.headers.vary).toBe("Origin");
    }
  });

  test("an OPTIONS that is no preflight is a method like others", async () => {
    const server = serverFor([app]);
    for (const headers of [{ origin: app }, { "access-control-request-method": "POST" }, {}]) {
      const answer = await server.inject({ method: "OPTIONS", url: chat, headers });
      expect([answer.statusCode, answer.json()]).toMatchObject([405, { error: { code: "method_not_allowed" } }]);
    }
    const nowhere = await server.inject({ method: "OPTIONS", url: "/v1/nothing" });
    expect([nowhere.statusCode, nowhere.json()]).toMatchObject([404, { error: { code: "unknown_url" } }]);
  });

  test("the document and Ollama's API may be read from a named origin, and what is for people and balancers may not", async () => {
    const server = serverFor([app]);
    const asked = (url: string) => server.inject({ method: "GET", url, headers: { origin: app } });
    expect((await asked("/openapi.json?x")).headers["access-control-allow-origin"]).toBe(app);
    expect(isAllowed(await asked("/healthz"))).toBe(false);
    expect(isAllowed(await preflight(server, app, {}, "/admin/v1/keys"))).toBe(false);
    expect(isAllowed(await preflight(server, app, {}, "/api/chat"))).toBe(true);
  });

  test("a way into a private network is for the browser's user to allow", async () => {
    const answer = await preflight(serverFor([app]), app, { "access-control-request-private-network": "true" });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers["access-control-allow-private-network"]).toBeUndefined();
  });
});

test("with any origin allowed, all are, and none by its name", async () => {
  const server = serverFor(["*"]);
  for (const origin of [app, "https://other.example", "null"]) {
    const allowed = await preflight(server, origin);
    expect([allowed.statusCode, allowed.headers["access-control-allow-origin"]]).toEqual([204, "*"]);
    const refused = await server.inject({ method: "POST", url: chat, headers: { origin } });
    expect([refused.statusCode, refused.headers["access-control-allow-origin"]]).toEqual([401, "*"]);
  }
  expect(isAllowed(await server.inject({ method: "POST", url: chat }))).toBe(false);
});
