import { afterAll, beforeAll, expect, test } from "vitest";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { exchange } from "./exchange.ts";

let gateway: GatewayInProcess;
let key: string;
beforeAll(async () => {
  gateway = await startGatewayInProcess();
  ({ key } = (await gateway.issue()).endpoint);
});
afterAll(() => gateway[Symbol.asyncDispose]());

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
function chat(fields: object): string {
  const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content: "hello" }], ...fields });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json`;
  return `${head}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
}

test.each([
  ["a list", () => get("/openapi.json"), 200],
  ["a page", () => get("/docs"), 200],
  ["a whole answer", () => chat({}), 200],
  ["a stream", () => chat({ stream: true }), 200],
  ["a refusal of the gateway", () => get("/v1/models"), 401],
  ["an unknown URL", () => get("/nothing"), 404],
  ["a refusal of the framework", () => get("/%zz"), 400],
  ["a refusal of the parser", () => "no HTTP at all\r\n\r\n", 400],
  ["a refused tunnel", () => "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405],
])("%s on the public port tells browsers not to guess its type", async (_, bytes, status) => {
  const { answers } = await exchange(gateway.baseUrl, { bytes: bytes(), answers: 1, afterwards: "open" });
  expect([answers[0]?.status, answers[0]?.headers.get("x-content-type-options")]).toEqual([status, "nosniff"]);
});

test.each([
  ["the metrics", () => get("/metrics"), 200],
  ["readiness", () => get("/readyz"), 200],
  ["readiness, as benchmarks ask for it", () => get("/health"), 200],
  ["a refusal of the admin API", () => get("/admin/v1/keys"), 401],
  ["a refusal of the parser", () => "no HTTP at all\r\n\r\n", 400],
])("%s on the operations port tells browsers not to guess its type", async (_, bytes, status) => {
  const { answers } = await exchange(gateway.operationsUrl, { bytes: bytes(), answers: 1, afterwards: "open" });
  expect([answers[0]?.status, answers[0]?.headers.get("x-content-type-options")]).toEqual([status, "nosniff"]);
});
