import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { afterEach, expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { untilClientLeaves } from "../../services/gateway/keys/authenticate.ts";
import { TurnWriter } from "../../services/gateway/jobs/write-answer.ts";
import { TimedResponse, writeWhole, type AnswerBounds } from "../../services/gateway/http/timed-response.ts";
import { createServer } from "../../services/gateway/server.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

const mib = 1024 * 1024;
/** More than the kernel takes for a client that does not read. */
const large = 48 * mib;

let server: FastifyInstance | undefined;
const open: Socket[] = [];
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await server?.close();
  server = undefined;
});

async function serve(answers: AnswerBounds): Promise<{ readonly port: number; readonly logged: readonly string[] }> {
  const logged: string[] = [];
  const log = createLog({ level: "info", name: "test", write: (line) => void logged.push(line) });
  const made = createServer({ log, bodyBytesMax: 1_024, bodyLimitName: "bytes", answers });
  server = made;
  made.get("/whole/:bytes", async (request, reply) => {
    const { bytes } = request.params as { bytes: string };
    writeWhole(reply, ["content-type", "application/json"], Buffer.alloc(Number(bytes), "x"));
    return reply;
  });
  made.get("/list", async () => "x".repeat(large));
  made.get("/stream", async (_request, reply) => {
    const leaving = untilClientLeaves(reply.raw);
    const writer = new TurnWriter(reply.raw);
    reply.hijack();
    reply.raw.writeHead(200);
    for (let bytes = 0; bytes < large; bytes += mib) writer.write(Buffer.alloc(mib, "x"));
    writer.end(Buffer.alloc(0));
    return leaving;
  });
  made.get("/gathering/:bytes", async (request, reply) => {
    const { bytes } = request.params as { bytes: string };
    const { signal } = untilClientLeaves(reply.raw);
    if (reply.raw instanceof TimedResponse) reply.raw.keptBytes = Number(bytes);
    await once(signal, "abort");
    throw signal.reason;
  });
  await made.listen({ host: "127.0.0.1", port: 0 });
  const address = made.server.address();
  return { port: typeof address === "object" && address !== null ? address.port : 0, logged };
}

/** Asks for something and reads nothing of the answer. */
async function askAndLeaveUnread(port: number, path: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").pause();
  open.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return socket;
}

const connections = (): Promise<number> =>
  new Promise((resolve, reject) => {
    server?.server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });

// A whole answer is written in pieces. What is written at once is waited for in proportion to its size.
test.each([
  ["/list", 10],
  [`/whole/${large}`, 200],
  ["/stream", 10],
])(
  "an answer to %s that its client does not read is let go after %i ms (clientStallMs), and the log says so",
  async (path, clientStallMs) => {
    const { port, logged } = await serve({ clientStallMs });
    await askAndLeaveUnread(port, path);
    await until(async () => logged.length > 0 && (await connections()) === 0, { what: "the connection to be cut" });
    expect(logged[0]).toContain("clientStallMs");
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({
      code: "slow_client",
      requests: [expect.stringMatching(/^req_/)],
    });
  },
);

test("vectors of many megabytes that their client does not read are let go by a gateway", async () => {
  const stateDir = folderOfTest();
  // A tenth of 30 s, and of all other times of the wire.
  const env = { TRUNKLINE_TIME_SCALE: "0.1" };
  await using gateway = await startGatewayInProcess({ stateDir, logLevel: "info", env });
  const { endpoint } = await gateway.issue();
  const fields = { model: "scripted:embed", encoding_format: "base64", dimensions: 2_048 };
  const body = JSON.stringify({ ...fields, input: Array.from({ length: 1_500 }, (_, at) => `text ${at}`) });
  const { port } = new URL(gateway.baseUrl);
  const socket = connect(Number(port), "127.0.0.1").pause();
  open.push(socket);
  socket.on("error", () => undefined);
  const head = `POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${endpoint.key}\r\nContent-Type: application/json`;
  socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  const isCut = (): boolean => gateway.logged.some((line) => line.includes("clientStallMs"));
  await until(isCut, { what: "the answer to be cut", timeoutMs: 30_000 });
  const metrics = async (): Promise<string> => (await fetch(`${gateway.operationsUrl}/metrics`)).text();
  expect(await metrics()).toContain('trunkline_answers_cut_total{reason="stall"} 1');
  await until(async () => (await metrics()).includes("trunkline_answer_bytes 0"), { what: "nothing to wait any more" });
});

test("a client that reads a whole answer slowly gets all of it", async () => {
  const { port, logged } = await serve({ clientStallMs: 1_000 });
  const bytes = 16 * mib;
  const socket = await askAndLeaveUnread(port, `/whole/${bytes}`);
  let read = 0;
  // Longer than a client may take nothing, in all.
  for (let turn = 0; turn < 6; turn += 1) {
    await setTimeout(300);
    for (let taken = 0; taken < 2 * mib;) {
      const piece = socket.read() as Buffer | null;
      if (piece === null) await once(socket, "readable");
      taken += piece?.byteLength ?? 0;
      read += piece?.byteLength ?? 0;
    }
  }
  socket.on("data", (piece: Buffer) => (read += piece.byteLength)).resume();
  await until(() => read >= bytes, { what: "all of the answer" });
  expect(logged.filter((line) => line.includes("was cut"))).toEqual([]);
});

test("above answerBytesMax the unread answer that holds the most is cut, and the others are not", async () => {
  const { port, logged } = await serve({ clientStallMs: 60_000, bytesMax: 64 * mib });
  const small = await askAndLeaveUnread(port, `/whole/${24 * mib}`);
  await askAndLeaveUnread(port, `/whole/${large + 16 * mib}`);
  await until(async () => (await connections()) === 1, { what: "one of the connections to be cut" });
  expect(logged.filter((line) => line.includes("answerBytesMax"))).toHaveLength(1);
  let read = 0;
  small.on("data", (piece: Buffer) => (read += piece.byteLength)).resume();
  await until(() => read >= 24 * mib, { what: "the other answer to be whole" });
});

test("a whole answer that grows beyond answerBytesMax before its status is refused with a 503 that says so", async () => {
  const { port } = await serve({ clientStallMs: 60_000, bytesMax: mib });
  const response = await fetch(`http://127.0.0.1:${port}/gathering/${2 * mib}`);
  expect([response.status, await response.text()]).toEqual([503, expect.stringContaining("answerBytesMax")]);
  expect(response.headers.get("retry-after")).not.toBeNull();
});
