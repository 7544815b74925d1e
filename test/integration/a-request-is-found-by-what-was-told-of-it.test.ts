import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { clientRequestCharactersMax } from "../../services/gateway/http/request-state.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { until } from "../harness/until.ts";

let gateway: GatewayInProcess;
let endpoint: Endpoint;
beforeAll(async () => {
  gateway = await startGatewayInProcess({ logLevel: "info" });
  ({ endpoint } = await gateway.issue());
});
afterAll(() => gateway[Symbol.asyncDispose]());

const requestLine = z.looseObject({ msg: z.literal("request"), request: z.string() });

/** The line of the log about the request that was told this id. */
function lineOf(response: Response): Promise<z.infer<typeof requestLine>> {
  const id = response.headers.get("x-request-id");
  const look = () => gateway.logged.map((line) => requestLine.safeParse(JSON.parse(line)).data);
  return until(() => look().find((line) => line?.request === id), { what: `the line of ${id}` });
}

const ask = (headers: Record<string, string>) => endpoint.send("GET", "/models", undefined, { headers });

test("a caller's own name for its request stands in the line that the log has of it, and never for our id", async () => {
  const response = await ask({ "x-client-request-id": 'order 7 of "bob"' });
  expect(response.headers.get("x-request-id")).toMatch(/^req_\w{22}$/);
  expect(response.headers.has("x-client-request-id")).toBe(false);
  expect(await lineOf(response)).toMatchObject({ client_request: 'order 7 of "bob"', status: 200 });
});

const longest = "x".repeat(clientRequestCharactersMax);
test.each<[string, Record<string, string>, object]>([
  ["that is not there is not missed", {}, {}],
  ["is kept as long as it may be", { "x-client-request-id": longest }, { client_request: longest }],
  ...[
    ["longer than it may be", `${longest}x`, "clientRequestCharactersMax"],
    ["of letters beyond ASCII", "b\xf6b", "not printable ASCII"],
    ["with a tab in it", "a\tb", "not printable ASCII"],
  ].map(([what, name = "", why]): [string, Record<string, string>, object] => [
    `${what} is left out, and the line says so`,
    { "x-client-request-id": name },
    { client_request_left_out: expect.stringContaining(String(why)) },
  ]),
])("a caller's own name for its request %s", async (_, headers, told) => {
  const line = Object.entries(await lineOf(await ask(headers)));
  expect(Object.fromEntries(line.filter(([name]) => name.startsWith("client_request")))).toEqual(told);
});

const firstMs = 120;
const says = `/script tokens=2 first_ms=${firstMs} delay_ms=200`;
const msOf = ({ headers }: Response): number => {
  expect(headers.get("openai-processing-ms")).toMatch(/^\d+$/);
  return Number(headers.get("openai-processing-ms"));
};

test("how long a request took to its headers is told with a stream when its first piece is there, not when it is over", async () => {
  const askedAtMs = performance.now();
  const response = await endpoint.chat({ model: "scripted", stream: true, says });
  const waitedMs = performance.now() - askedAtMs;
  expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
  expect(msOf(response)).toBeGreaterThanOrEqual(firstMs - 5);
  expect(msOf(response)).toBeLessThanOrEqual(waitedMs);
  await response.text();
});

test("how long a request took to its headers is told with a whole answer, an error and what is nowhere", async () => {
  const whole = await endpoint.chat({ model: "scripted", says });
  expect(msOf(whole)).toBeGreaterThanOrEqual(firstMs);
  for (const response of [await endpoint.chat({ model: "absent", says }), await endpoint.get("/nothing")]) {
    expect(msOf(response)).toBeLessThan(firstMs);
  }
});
