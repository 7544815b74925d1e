import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { until } from "../harness/until.ts";
import { readingCpuMsPerMb } from "../../services/gateway/requests/read-request.ts";
import { uploadBytesMax } from "../../services/gateway/http/bound-uploads.ts";

const bodyBytes = 32 * 1024 * 1024;

let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess()));
afterAll(() => gateway[Symbol.asyncDispose]());

/** Sends the head of a large request and a part of its body, and keeps the connection: what comes is the answer. */
function begin(request: string, headers = "", sentBytes = 1): Promise<string> {
  const { hostname, port } = new URL(gateway.baseUrl);
  const socket = connect(Number(port), hostname);
  socket.write(
    `${request} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n${headers}\r\n`,
  );
  socket.write(Buffer.alloc(sentBytes, " "));
  return new Promise((resolve) => {
    let told = "";
    socket.on("data", (bytes) => (told += bytes.toString()));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(told));
  });
}

test.each([
  ["POST /nope", 404],
  ["POST /healthz", 405],
  ["PUT /v1/models", 405],
  ["PUT /v1/chat/completions", 405],
  ["POST /v1/chat/completions", 401],
])("%s with a large body is answered %i before it is sent, however often", async (request, status) => {
  const enough = Math.ceil(uploadBytesMax / bodyBytes) + 1;
  const answers = await Promise.all(Array.from({ length: enough }, () => begin(request)));
  expect(new Set(answers.map((answer) => answer.slice(0, 12)))).toEqual(new Set([`HTTP/1.1 ${status}`]));
  const { endpoint } = await gateway.issue();
  expect((await endpoint.chat({ model: "scripted", says: "x".repeat(1_000_000), max_tokens: 1 })).status).toBe(200);
});

test("a client that sends a large body without a key makes this process read next to nothing of it", async () => {
  const read: Socket[] = [];
  const note = (message: unknown): void => void read.push(Reflect.get(Object(message), "socket"));
  subscribe("http.server.request.start", note);
  const { hostname, port } = new URL(gateway.baseUrl);
  const socket = connect(Number(port), hostname);
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
  socket.write(`${head}Content-Length: ${1024 * 1024 * 1024}\r\n\r\n`);
  const piece = Buffer.alloc(64 * 1024);
  const pour = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", pour);
  socket.on("error", () => undefined);
  pour();
  await new Promise((resolve) => socket.once("close", resolve));
  unsubscribe("http.server.request.start", note);
  await until(() => read[0]?.destroyed, { what: "the gateway to close the connection" });
  expect(read[0]?.bytesRead).toBeLessThan(256 * 1024);
});

test("a sender whose large bodies keep arriving keeps nobody else out", async () => {
  const [greedy, other] = [await gateway.issue(), await gateway.issue()];
  const headers = `Authorization: Bearer ${greedy.endpoint.key}\r\n`;
  const slow = new Set<Promise<string>>();
  for (let body = 0; body < 8; body += 1) slow.add(begin("POST /v1/chat/completions", headers, bodyBytes - 1));
  const refused = await Promise.race(slow);
  expect(refused).toContain("uploadBytesMax");
  expect((await other.endpoint.chat({ model: "scripted", says: "x".repeat(1_000_000), max_tokens: 1 })).status).toBe(
    200,
  );
});

test("large requests that wait for others to be read, longer than one may take itself, are all read", async () => {
  const { endpoint } = await gateway.issue();
  const messages = Array.from({ length: 9_999 }, () => ({ role: "user", content: "one of very many messages" }));
  const sentAt = performance.now();
  const asked = Array.from({ length: 80 }, () => endpoint.chat({ model: "nobody-has-it", messages }));
  const answers = await Promise.all(asked);
  expect(performance.now() - sentAt).toBeGreaterThan(readingCpuMsPerMb);
  // Only a request that was read tells its model.
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
});
