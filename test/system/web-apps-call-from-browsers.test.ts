import { afterAll, beforeAll, expect, test } from "vitest";
import { EventStream } from "../harness/event-stream.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { startUp } from "../harness/start-trunkline.ts";
import type { Endpoint } from "../harness/endpoint.ts";

const app = "https://app.example";

let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess({ env: { TRUNKLINE_CORS_ORIGINS: app } })));
afterAll(() => gateway[Symbol.asyncDispose]());

/** What a browser sends on behalf of a page that uses the official client. */
function fromPage({ baseUrl, key }: Endpoint, fields: object, origin = app): Promise<Response> {
  return fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { origin, authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
}

const says = (content: string) => ({ model: "scripted", messages: [{ role: "user", content }] });

test("a page of an origin that is named reads answers, and streams to their end or to the error that they break in", async () => {
  const { endpoint } = await gateway.issue();
  const whole = await fromPage(endpoint, says("/script tokens=2"));
  const stream = await fromPage(endpoint, { ...says("/script tokens=2"), stream: true });
  const broken = await fromPage(endpoint, { ...says("/script tokens=4 fail_at=2"), stream: true });
  for (const { status, headers } of [whole, stream, broken]) {
    expect(status).toBe(200);
    expect(headers.get("access-control-allow-origin")).toBe(app);
    expect(headers.get("access-control-expose-headers")).toContain("x-request-id");
    expect(headers.get("vary")).toBe("Origin");
  }
  const [read, cut] = [new EventStream(stream), new EventStream(broken)];
  await Promise.all([read.over, cut.over, whole.text()]);
  expect(read.done).toBe(true);
  expect(cut.events.at(-1)).toContain('"upstream_error"');
});

test("the gateway that is asked serves its reference, and knows no browser unless told", async () => {
  await using up = await startUp();
  const { origin } = new URL(up.endpoint.baseUrl);
  const document = await fetch(`${origin}/openapi.json`, { headers: { origin: app } });
  expect(document.status).toBe(200);
  expect(document.headers.get("access-control-allow-origin")).toBeNull();
  const { openapi, "x-trunkline-limits": limits } = (await document.json()) as Record<string, unknown>;
  expect(openapi).toBe("3.1.0");
  expect(limits).toContainEqual(expect.objectContaining({ name: "TRUNKLINE_BODY_BYTES_MAX", value: 33_554_432 }));
  const page = await fetch(`${origin}/docs`);
  expect(page.status).toBe(200);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const preflight = await fetch(`${up.endpoint.baseUrl}/models`, {
    method: "OPTIONS",
    headers: { origin: app, "access-control-request-method": "GET" },
  });
  expect(preflight.status).toBe(405);
});
