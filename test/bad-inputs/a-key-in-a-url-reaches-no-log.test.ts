import { afterAll, beforeAll, expect, test } from "vitest";
import { errorIn } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { until } from "../harness/until.ts";
import { exchange } from "./exchange.ts";

let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess({ logLevel: "trace" })));
afterAll(() => gateway[Symbol.asyncDispose]());

test.each([
  ["%5F", "as it should be"],
  ["%5f", "in small letters"],
  ["%255F", "twice"],
])("a key in a URL whose underscores are written %s (%s) is neither logged nor told", async (underscore) => {
  const { key } = (await gateway.issue()).endpoint;
  const [, id = "", secret = ""] = key.split("_");
  const written = key.replaceAll("_", underscore);
  for (const path of [`/v1/models/${written}`, `/nowhere/${written}`, `/${written}?key=${written}`]) {
    const linesBefore = gateway.logged.length;
    const bytes = `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    const { answers } = await exchange(gateway.baseUrl, { bytes, answers: 1, afterwards: "open" });
    expect(answers[0]?.status).toBe(404);
    expect(errorIn(answers[0]?.body ?? "").message).not.toContain(secret);
    await until(() => gateway.logged.slice(linesBefore).some((line) => line.includes('"request"')), {
      what: "the line of the request",
    });
  }
  expect(gateway.logged.join("")).toContain(id);
  expect(gateway.logged.join("")).not.toContain(secret);
});
