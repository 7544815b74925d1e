import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { createServer } from "../../services/gateway/server.ts";
import { errorIn } from "../harness/endpoint.ts";
import { exchange } from "./exchange.ts";

const patience = { headersMs: 100, requestMs: 200, lookEveryMs: 20 };

let server: FastifyInstance;
let baseUrl: string;
beforeEach(async () => {
  const log = createLog({ level: "silent", name: "test" });
  const limit = { bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" };
  server = createServer({ log, ...limit, patience });
  server.get("/healthz", async () => ({ status: "ok" }));
  server.post("/", async () => ({ read: true }));
  baseUrl = await server.listen({ host: "127.0.0.1", port: 0 });
});
afterEach(() => server.close());

const beginnings = [
  ["whoever is slow with its headers", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-A"],
  ["whoever is slow with its first line", "GET /hea"],
  [
    "whoever is slow with its body",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
  ],
  [
    "whoever is slow with its chunks",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
  ],
] as const;

test.each(beginnings)("%s is told so, and its connection is closed", async (_, bytes) => {
  const { answers } = await exchange(baseUrl, { bytes, answers: 1, afterwards: "closed" });
  const [answer] = answers;
  expect(answer?.status).toBe(408);
  expect(errorIn(answer?.body ?? "").code).toBe("request_timeout");
  expect(answer?.headers.get("x-request-id")).toMatch(/^req_\w{10,}$/);
  // Official clients repeat a 408, and would be as slow again.
  expect(answer?.headers.get("x-should-retry")).toBe("false");
});

test("connections on which nothing is sent are closed, and nobody else waits for them", async () => {
  const idle = Array.from({ length: 500 }, () => exchange(baseUrl, { bytes: "", answers: 1, afterwards: "closed" }));
  const good = { bytes: "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", answers: 1, afterwards: "open" } as const;
  expect((await exchange(baseUrl, good)).answers[0]?.status).toBe(200);
  const ends = await Promise.all(idle);
  expect(new Set(ends.map(({ answers }) => answers[0]?.status))).toEqual(new Set([408]));
  expect(ends.every(({ closed }) => closed)).toBe(true);
});
