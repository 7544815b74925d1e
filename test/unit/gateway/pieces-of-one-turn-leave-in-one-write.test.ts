import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { TurnWriter } from "../../../services/gateway/jobs/write-answer.ts";
import { until } from "../../harness/until.ts";

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
