import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { readAnyBody, readBody, writeLargeJson } from "../../../services/agent/runtimes/json-bodies.ts";
import { RuntimeConnection } from "../../../services/agent/runtimes/runtime-connection.ts";

const mib = 1024 * 1024;
const chat = (content: string, more: object = {}) => ({ messages: [{ role: "user", content }], ...more });
const bytesOf = (value: object): Uint8Array => Buffer.from(JSON.stringify(value));

/** Counts the turns of the event loop while something runs. */
async function turnsOf(run: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let runs = true;
  const turn = (): void => {
    turns += 1;
    if (runs) setImmediate(turn);
  };
  setImmediate(turn);
  await run();
  runs = false;
  return turns;
}

async function faultOf(read: () => unknown): Promise<Pick<Fault, "code" | "param"> & { message: string }> {
  try {
    await read();
  } catch (thrown) {
    const { code, param, message } = Fault.from(thrown);
    return { code, param, message };
  }
  throw new Error("it was read");
}

test("the body of a large job is read as a small one is, while the event loop goes on", async () => {
  const body = chat('"ä\n'.repeat(mib), { n: 2 });
  const turns = await turnsOf(async () => expect(await readAnyBody("chat", bytesOf(body))).toEqual(body));
  expect(turns).toBeGreaterThan(0);
});

test.each([
  ["has a field that this build does not know", chat("x".repeat(mib), { temprature: 1 })],
  ["has an unknown field within a message", { messages: [{ role: "user", content: "x".repeat(mib), mood: "good" }] }],
  ["has a value that this build does not know", chat("x".repeat(mib), { n: "2" })],
])("the body of a large job is refused as a small one is when it %s", async (_, body) => {
  const fault = await faultOf(() => readBody("chat", bytesOf(body)));
  expect(fault).toMatchObject({ code: "unsupported_parameter", param: expect.stringMatching(/^(temprature|mood|n)$/) });
  expect(await faultOf(() => readAnyBody("chat", bytesOf(body)))).toEqual(fault);
});

test("the request to a runtime counts as large by its texts and its fields together", async () => {
  expect(writeLargeJson(chat("x".repeat(200_000)))).toBeUndefined();
  expect(await writeLargeJson(chat("x".repeat(300_000)))).toBeInstanceOf(Uint8Array);
  expect(await writeLargeJson({ input: Array.from({ length: 300_000 }, () => 0) })).toBeInstanceOf(Uint8Array);
});

test("the request to a runtime is written as JSON while the event loop goes on", async () => {
  const body = chat('"ä\n'.repeat(mib));
  let written: Uint8Array = Buffer.of();
  const turns = await turnsOf(async () => (written = (await writeLargeJson(body)) ?? written));
  expect(Buffer.from(written).toString() === JSON.stringify(body)).toBe(true);
  expect(turns).toBeGreaterThan(0);
});

test("the request to a runtime reaches the runtime whole when it is large, and never after its job was cancelled", async () => {
  const heard: string[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      heard.push(Buffer.concat(pieces).toString());
      response.end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const connection = new RuntimeConnection({
    url: `http://127.0.0.1:${port}`,
    faultOf: ({ text }) => new Fault("upstream_error", { message: text }),
  });
  onTestFinished(async () => {
    await connection.close();
    server.close();
  });
  const leaving = new AbortController();
  const cancelled = connection.text({ path: "/", body: chat("y".repeat(mib)), signal: leaving.signal });
  leaving.abort(new Fault("client_closed", { message: "cancelled" }));
  await expect(cancelled).rejects.toMatchObject({ code: "client_closed" });
  const body = chat("x".repeat(mib));
  await connection.text({ path: "/", body, signal: new AbortController().signal });
  expect(heard).toEqual([JSON.stringify(body)]);
});
