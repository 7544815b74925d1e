import { afterAll, beforeAll, expect, test } from "vitest";
import { EventStream } from "../harness/event-stream.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";

const app = "https://app.example";

let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess({ env: { TRUNKLINE_CORS_ORIGINS: app } })));
afterAll(() => gateway[Symbol.asyncDispose]());

test("a page of an origin that is named reads answers, and streams to their end or to the error that they break in", async () => {
  const { endpoint } = await gateway.issue();
  const ask = (script: string, stream: boolean): Promise<Response> => {
    const fields = { model: "scripted", stream, messages: [{ role: "user", content: `/script ${script}` }] };
    return endpoint.post("/chat/completions", fields, { headers: { origin: app } });
  };
  const [whole, stream] = [await ask("tokens=2", false), await ask("tokens=2", true)];
  const broken = await ask("tokens=4 fail_at=2", true);
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

test("a gateway knows no browser unless it is told", async () => {
  await using plain = await startGatewayInProcess();
  const { endpoint } = await plain.issue();
  const headers = { origin: app, "access-control-request-method": "GET" };
  const read = await endpoint.send("GET", "/models", undefined, { headers });
  expect([read.status, read.headers.get("access-control-allow-origin")]).toEqual([200, null]);
  expect((await endpoint.send("OPTIONS", "/models", undefined, { headers })).status).toBe(405);
});
