import { afterAll, beforeAll, expect, test } from "vitest";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { exchange } from "./exchange.ts";

const token = "a-token-of-the-test-for-metrics";

const stateDir = folderOfTests();
let gateway: GatewayInProcess;
let admin: string;
beforeAll(async () => {
  const env = { TRUNKLINE_OPERATIONS_HOSTS: "ops.example, Gateway.Internal", TRUNKLINE_METRICS_TOKEN: token };
  gateway = await startGatewayInProcess({ stateDir, env });
  await using operator = await Operator.on({ stateDir });
  admin = (await operator.issue({ kind: "admin" })).token.reveal();
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function ask(path: string, host: string, authorization = `Bearer ${admin}`) {
  const head = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\n\r\n`;
  const { answers } = await exchange(gateway.operationsUrl, { bytes: head, answers: 1, afterwards: "open" });
  return answers[0];
}

test.each(["/healthz", "/readyz", "/metrics", "/admin/v1/keys", "/admin/v1/openapi.json"])(
  "a page that has its own name lead to the operations port reads nothing at %s",
  async (path) => {
    for (const host of ["evil.example", "evil.example:8081", "127.0.0.1.evil.example", "ops.example.evil.example"]) {
      const answer = await ask(path, host);
      expect([answer?.status, answer?.body]).toEqual([400, expect.stringContaining("TRUNKLINE_OPERATIONS_HOSTS")]);
    }
  },
);

test.each(["127.0.0.1", "127.0.0.1:8081", "[::1]:8081", "localhost:8081", "a.localhost", "gateway-1:8081"])(
  "the operations port answers by the name %s, which no foreign DNS leads to",
  async (host) => {
    expect((await ask("/admin/v1/keys", host))?.status).toBe(200);
  },
);

test.each(["ops.example", "OPS.example:8081", "gateway.internal.", "gateway.internal"])(
  "the operations port answers by the name %s, which its operator has named",
  async (host) => {
    expect((await ask("/admin/v1/keys", host))?.status).toBe(200);
  },
);

test("metrics with a token are shown to its holder and to nobody else, not even with an admin key", async () => {
  expect((await ask("/metrics", "localhost", `Bearer ${token}`))?.body).toContain("trunkline_open_requests");
  for (const wrong of ["", `Basic ${token}`, `Bearer ${token}x`, `Bearer ${admin}`]) {
    const answer = await ask("/metrics", "localhost", wrong);
    expect([answer?.status, answer?.body]).toEqual([401, expect.stringContaining("TRUNKLINE_METRICS_TOKEN")]);
    expect(answer?.headers.get("www-authenticate")).toBe("Bearer");
  }
  for (const path of ["/healthz", "/readyz"]) expect((await ask(path, "localhost", ""))?.status).toBe(200);
});
