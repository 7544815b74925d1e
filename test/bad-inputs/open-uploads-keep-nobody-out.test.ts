import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { until } from "../harness/until.ts";
import { exchange, type Exchanged } from "./exchange.ts";

let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess({ logLevel: "info" })));
afterAll(() => gateway[Symbol.asyncDispose]());

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

const chunked = "Transfer-Encoding: chunked\r\n";
const head = (key: string, length: string): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer ${key}\r\n${length}\r\n`;

/** Opens an upload that never ends. It is open once the gateway has asked for its body. */
async function openUpload({ key }: Endpoint, length = chunked): Promise<Socket> {
  const { hostname, port } = new URL(gateway.baseUrl);
  const socket = connect(Number(port), hostname);
  open.push(socket);
  socket.write(head(key, `Expect: 100-continue\r\n${length}`));
  const [told] = await once(socket.setEncoding("latin1"), "data");
  expect(told).toContain("100 Continue");
  socket.write(length === chunked ? "1\r\n{\r\n" : "{");
  return socket;
}

/** The answer to an upload of which one byte has come. */
async function answerToBeginning({ key }: Endpoint): Promise<Exchanged["answers"][number] | undefined> {
  const bytes = `${head(key, chunked)}1\r\n{\r\n`;
  return (await exchange(gateway.baseUrl, { bytes, answers: 1, afterwards: "closed" })).answers[0];
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Counts the open uploads that are answered, from now on. */
function countRefusals(): () => number {
  const linesBefore = gateway.logged.length;
  return () => gateway.logged.slice(linesBefore).filter((line) => line.includes("server_is_overloaded")).length;
}

const withLimits = async (limits: KeyLimits): Promise<Endpoint> => (await gateway.issue({ limits })).endpoint;
const chat = { model: "scripted", says: "hello", max_tokens: 1 } as const;

test.each([
  ["chunked", chunked],
  ["of 32 MiB", `Content-Length: ${32 * 1024 * 1024}\r\n`],
])("sixteen open uploads, %s and of one byte each, leave room for everybody's small chats", async (_, length) => {
  const refused = countRefusals();
  for (let sender = 0; sender < 4; sender += 1) {
    const { endpoint } = await gateway.issue();
    for (let upload = 0; upload < 4; upload += 1) await openUpload(endpoint, length);
  }
  const { endpoint } = await gateway.issue();
  expect((await endpoint.chat(chat)).status).toBe(200);
  await openUpload(endpoint);
  expect(refused()).toBe(0);
});

test("a body in chunks of one byte takes hardly more memory than it has bytes", async () => {
  const { endpoint } = await gateway.issue();
  const taken: Socket[] = [];
  const note = (message: unknown): void => void taken.push(Reflect.get(Object(message), "socket"));
  subscribe("http.server.request.start", note);
  const socket = await openUpload(endpoint);
  unsubscribe("http.server.request.start", note);
  const beforeBytes = heapBytes();
  const chunks = 100_000;
  const sent = "1\r\n \r\n".repeat(chunks);
  socket.write(sent);
  await until(() => (taken[0]?.bytesRead ?? 0) >= sent.length, { what: "all chunks to have come", timeoutMs: 15_000 });
  // Each chunk that was kept by itself would take some 180 bytes.
  expect(heapBytes() - beforeBytes).toBeLessThan(chunks * 60);
});

test("a key over its request rate is refused before the body of its request has come", async () => {
  const endpoint = await withLimits({ requestsPerMinute: 1 });
  expect((await endpoint.chat(chat)).status).toBe(200);
  expect((await endpoint.chat(chat)).status).toBe(429);
  const answer = await answerToBeginning(endpoint);
  expect([answer?.status, answer?.body]).toEqual([429, expect.stringContaining("1 request a minute")]);
  expect(Number(answer?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(answer?.headers.get("x-ratelimit-remaining-requests")).toBe("0");
});

test("a key with as many open uploads as it may have requests under way is refused one more", async () => {
  const endpoint = await withLimits({ concurrency: 2 });
  await openUpload(endpoint);
  const second = await openUpload(endpoint);
  const answer = await answerToBeginning(endpoint);
  expect([answer?.status, answer?.body]).toEqual([429, expect.stringContaining("concurrency_limit_exceeded")]);
  second.destroy();
  await until(async () => (await endpoint.chat(chat)).status === 200, {
    what: "the place of the upload that has left",
  });
});

test("a client that leaves its one request may send the next at once", async () => {
  const endpoint = await withLimits({ concurrency: 1 });
  for (let time = 0; time < 5; time += 1) {
    const upload = await openUpload(endpoint);
    upload.destroy();
    expect((await endpoint.chat(chat)).status).toBe(200);
  }
});
