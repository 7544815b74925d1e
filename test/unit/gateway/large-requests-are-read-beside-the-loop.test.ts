import { setImmediate as turnEnd } from "node:timers/promises";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import {
  readingBytesMax,
  type RequestReader,
  type ReadRequest,
} from "../../../services/gateway/requests/read-request.ts";
import type { ChatForm } from "../../../services/gateway/chats/read-chat.ts";
import { openReader, readRequest } from "../../harness/read-requests.ts";

const mib = 1024 * 1024;
const promptSeed = 7;

/** The start of a thread takes longest here: tests that do not stop it share one. */
const shared = openReader(promptSeed);
afterAll(() => shared.stop());

function ownReader(): RequestReader {
  const reader = openReader(promptSeed);
  onTestFinished(() => reader.stop());
  return reader;
}

/** Each of its characters looked at alone would take more memory than a reading thread has. */
const text = "x".repeat(16 * mib);
const bytesOf = (request: object): Buffer => Buffer.from(JSON.stringify(request));
const chat = (content: string, fields: object = {}): Buffer =>
  bytesOf({ model: "llama3", user: "ann", messages: [{ role: "user", content }], ...fields });

async function faultOf(read: ReadRequest | Promise<ReadRequest>): Promise<Fault> {
  try {
    await read;
  } catch (thrown) {
    return Fault.from(thrown);
  }
  return Fault.from("it was read");
}

const isDoneThisTurn = (reading: Promise<unknown>): Promise<boolean> =>
  Promise.race([reading.then(() => true), turnEnd(false)]);

test.each<[string, Buffer]>([
  ["chat", chat("ä".repeat(mib), { stream: true, stop: "END" })],
  ["response", bytesOf({ model: "llama3", input: "ä".repeat(mib), tools: [{ type: "function", name: "f" }] })],
  [
    "message",
    bytesOf({
      model: "llama3",
      max_tokens: 9,
      messages: [{ role: "user", content: "ä".repeat(mib) }],
      tools: [{ name: "files.read", input_schema: {} }],
    }),
  ],
  ["completion", bytesOf({ model: "llama3", prompt: ["a".repeat(mib), "b"], n: 2 })],
  ["embeddings", bytesOf({ model: "embed", input: ["a".repeat(mib)], encoding_format: "base64" })],
])("a large request of the kind %s is read beside the loop as it would be read on it", async (outer, bytes) => {
  const onTheLoop = readRequest(outer, Buffer.from(bytes), { promptSeed });
  const { body, ...asked } = await shared.read(outer, bytes);
  expect({ ...asked, body: Buffer.from(body).toString() }).toEqual({
    ...onTheLoop,
    body: Buffer.from(onTheLoop.body).toString(),
  });
  expect(asked.sha256).toMatch(/^[0-9a-f]{64}$/);
});

test("a count of 100 KB is estimated in the reading thread, and a chat of the same size is read at once", async () => {
  const large = bytesOf({
    model: "llama3",
    max_tokens: 9,
    messages: [{ role: "user", content: "x = 1; ".repeat(15_000) }],
  });
  const counted = shared.read("count", Buffer.from(large));
  expect(await isDoneThisTurn(counted)).toBe(false);
  expect(((await counted).form as ChatForm).upper?.tokens).toBeGreaterThan(15_000);
  expect(await isDoneThisTurn(shared.read("message", large))).toBe(true);
});

test("a large request that is wrong is refused as it would be on the loop", async () => {
  const wrong = chat("a".repeat(mib), { n: 0 });
  const fault = await faultOf(shared.read("chat", wrong));
  expect(fault).toMatchObject({ code: "integer_below_min_value", param: "n" });
  expect(fault.message).toBe("'n' must be at least 1.");
});

test.each<[string, string, object]>([
  ["chat", "tools[0].function", { tools: [{ type: "function", function: text }] }],
  ["chat", "response_format.json_schema", { response_format: { type: "json_schema", json_schema: text } }],
  ["response", "text", { input: "Hello", text }],
  ["response", "text.format", { input: "Hello", text: { format: text } }],
  ["response", "reasoning", { input: "Hello", reasoning: text }],
  ["message", "output_config", { max_tokens: 9, output_config: text }],
  ["message", "tools[0].input_schema", { max_tokens: 9, tools: [{ name: "f", input_schema: text }] }],
])(
  "a large request of the kind %s with a text where an object belongs, %s, costs no more than its length",
  async (outer, param, fields) => {
    const messages = [{ role: "user", content: "Hello" }];
    const fault = await faultOf(
      shared.read(outer, bytesOf({ model: "llama3", ...(outer !== "response" && { messages }), ...fields })),
    );
    expect([fault.code, fault.param]).toEqual(["invalid_type", param]);
  },
);

test("a large request lets the loop go on while it is read", async () => {
  await shared.read("chat", chat("a".repeat(mib)));
  let turns = 0;
  let reading = true;
  const turn = (): void => {
    turns += 1;
    if (reading) setImmediate(turn);
  };
  setImmediate(turn);
  await shared.read("chat", chat('"'.repeat(8 * mib)));
  reading = false;
  expect(turns).toBeGreaterThan(10);
});

test("a large request of 300 KB waits for none of 24 MiB", async () => {
  const done: string[] = [];
  const read = async (name: string, bytes: number): Promise<void> => {
    await shared.read("chat", chat("x".repeat(bytes)), { sender: name });
    done.push(name);
  };
  await Promise.all([read("small", 300_000), read("large", 2 * mib)]);
  done.length = 0;
  await Promise.all([read("large", 24 * mib), read("large", 24 * mib), read("small", 300_000)]);
  expect(done).toEqual(["small", "large", "large"]);
});

test("a large request counts with the bytes of the stored turns that it goes on from", async () => {
  const stored = new Map([["resp_1", "x".repeat(readingBytesMax)]]);
  const fault = await faultOf(shared.read("response", bytesOf({ model: "llama3", input: "Hello" }), { stored }));
  expect(fault).toMatchObject({ code: "server_is_overloaded" });
});

test("a large request whose thread ends is told so, and the next one gets another", async () => {
  const reader = ownReader();
  const broken = faultOf(reader.read("chat", chat("a".repeat(8 * mib))));
  await reader.stop();
  expect(await broken).toMatchObject({ code: "internal_error" });
  expect((await reader.read("chat", chat("a".repeat(mib)))).model).toBe("llama3");
});

test("a large request is refused while so many are being read that they would fill the memory", async () => {
  const reader = ownReader();
  const large = Buffer.alloc(readingBytesMax, "x");
  const first = faultOf(reader.read("chat", large));
  expect(await faultOf(reader.read("chat", chat("a".repeat(mib))))).toMatchObject({
    code: "server_is_overloaded",
    message: expect.stringContaining("readingBytesMax"),
  });
  await reader.stop();
  await first;
});
