import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { TurnWriter } from "../../../services/gateway/jobs/write-answer.ts";
import { until } from "../../harness/until.ts";
import { createLog } from "#shared/process/log.ts";
import { writeWhole } from "../../../services/gateway/http/timed-response.ts";
import { createServer as createGateway } from "../../../services/gateway/server.ts";

const headers = ["content-type", "text/plain"];

/** An answer that a test writes, and its body as it comes over the wire, framing and all. */
async function answerTo(version: "1.0" | "1.1") {
  const opened = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => opened.resolve(response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client: Socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  onTestFinished(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  let received = "";
  client.on("data", (bytes: Buffer) => (received += bytes.toString("latin1")));
  client.write(`GET / HTTP/${version}\r\nHost: a\r\n\r\n`);
  const response = await opened.promise;
  response.writeHead(200, headers);
  const body = (): string => received.slice(received.indexOf("\r\n\r\n") + 4);
  return {
    response,
    writer: new TurnWriter(response),
    client,
    head: () => received.slice(0, received.indexOf("\r\n\r\n")),
    bodyIs: (expected: string) =>
      until(() => body() === expected, { what: `the body to be ${JSON.stringify(expected)}` }),
  };
}

test("an answer in pieces is one chunk for each turn, its pieces in their order", async () => {
  const { writer, bodyIs } = await answerTo("1.1");
  for (const piece of ["one ", "two ", "three"]) writer.write(Buffer.from(piece));
  await bodyIs("d\r\none two three\r\n");
  writer.write(Buffer.from("four"));
  await bodyIs("d\r\none two three\r\n4\r\nfour\r\n");
  writer.write(Buffer.from(", five"));
  writer.end(Buffer.from(", six"));
  await bodyIs("d\r\none two three\r\n4\r\nfour\r\nb\r\n, five, six\r\n0\r\n\r\n");
});

test("an answer in pieces leaves its connection open for the next request", async () => {
  const { writer, client, head, bodyIs } = await answerTo("1.1");
  writer.end(Buffer.from("a"));
  await bodyIs("1\r\na\r\n0\r\n\r\n");
  expect(head()).toMatch(/transfer-encoding: chunked/i);
  expect([client.destroyed, client.readableEnded]).toEqual([false, false]);
});

test("an answer in pieces has no chunks for a client that knows of none, and ends with the connection", async () => {
  const { writer, client, head, bodyIs } = await answerTo("1.0");
  writer.write(Buffer.from("one "));
  writer.write(Buffer.from("two"));
  await bodyIs("one two");
  writer.end(Buffer.from(" three"));
  await bodyIs("one two three");
  await until(() => client.readableEnded, { what: "the connection to end" });
  expect(head()).not.toMatch(/transfer-encoding/i);
});

test("an answer in pieces counts what waits for the end of the turn as held", async () => {
  const { writer, bodyIs } = await answerTo("1.1");
  writer.write(Buffer.alloc(1_000, "a"));
  expect(writer.heldBytes).toBeGreaterThanOrEqual(1_000);
  await bodyIs(`3e8\r\n${"a".repeat(1_000)}\r\n`);
  expect(writer.heldBytes).toBe(0);
});

test("an answer in pieces that is broken off says nothing more, and no end", async () => {
  const { writer, response, client } = await answerTo("1.1");
  writer.write(Buffer.from("never said"));
  response.destroy();
  await until(() => client.destroyed || client.readableEnded, { what: "the connection to end" });
  expect(writer.heldBytes).toBe(0);
});

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

async function serving(body: Buffer) {
  const log = createLog({ level: "silent", name: "test" });
  const server = createGateway({ log, bodyBytesMax: 1_000, bodyLimitName: "bytes" });
  server.get("/whole", async (_request, reply) => {
    reply.header("x-told", "so");
    writeWhole(reply, ["content-type", "application/json; charset=utf-8"], body);
    return reply;
  });
  const url = await server.listen({ port: 0, host: "127.0.0.1" });
  return { url: `${url}/whole`, port: Number(new URL(url).port), [Symbol.asyncDispose]: () => server.close() };
}

test.each([
  ["a small one", Buffer.from('{"text":"über, 日本, 🎉"}')],
  ["one with every byte that there is", everyByte],
  ["one that is too large to be joined to its head", Buffer.concat(Array.from({ length: 500 }, () => everyByte))],
  ["an empty one", Buffer.alloc(0)],
])("%s arrives byte for byte, with all of its headers", async (_what, body) => {
  await using served = await serving(body);
  for (let asked = 0; asked < 2; asked += 1) {
    const answer = await fetch(served.url);
    expect(answer.status).toBe(200);
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(body);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "content-length": String(body.byteLength),
      "x-told": "so",
      "x-request-id": expect.stringMatching(/^req_/),
      "openai-processing-ms": expect.stringMatching(/^\d+$/),
      date: expect.any(String),
    });
  }
});

test("a client of HTTP/1.0 has its answer and the end of its connection", async () => {
  await using served = await serving(everyByte);
  const socket = connect(served.port, "127.0.0.1");
  socket.end("GET /whole HTTP/1.0\r\n\r\n");
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  await once(socket, "close");
  const all = Buffer.concat(pieces);
  expect(all.subarray(-everyByte.byteLength)).toEqual(everyByte);
  expect(all.toString("latin1")).toMatch(/^connection: close\r$/im);
});
