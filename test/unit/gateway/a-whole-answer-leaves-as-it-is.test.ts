import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { writeWhole } from "../../../services/gateway/http/timed-response.ts";
import { createServer } from "../../../services/gateway/server.ts";

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

async function serving(body: Buffer) {
  const log = createLog({ level: "silent", name: "test" });
  const server = createServer({ log, bodyBytesMax: 1_000, bodyLimitName: "bytes" });
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
