import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { refusalOf } from "../harness/endpoint.ts";
import { FakeLlamaCppPython, windowCharacters } from "../harness/fake-llama-cpp-python.ts";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { FakeOtherServer } from "../harness/fake-other-server.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const scale = 0.25;
const words = Array.from({ length: 40 }, (_, place) => `word${place} `);
const wordMs = 25;

/** Says all words, far longer than it takes until the list of models is due again. */
async function sayAllWords(chat: FakeOpenAiChat): Promise<void> {
  for (const word of words) {
    if (chat.ended) return;
    chat.say(word);
    await pause(wordMs);
  }
  if (!chat.ended) chat.done();
}

describe.skipIf(lentOnly("nats", "redis"))("a model server that works", () => {
  const parts = new AsyncDisposableStack();
  let vllm: FakeVllm;
  let bare: FakeOtherServer;
  let python: FakeLlamaCppPython;
  let fleet: Fleet;
  beforeAll(async () => {
    vllm = parts.use(await FakeVllm.start({ models: [{ id: "slow-list" }] }));
    bare = parts.use(await FakeOtherServer.start({ models: ["bare"] }));
    python = parts.use(await FakeLlamaCppPython.start());
    const at = (url: string) => ({ env: { TRUNKLINE_RUNTIME: "auto", TRUNKLINE_RUNTIME_URL: url } });
    const machines = { attic: at(vllm.url), cellar: at(bare.url), loft: at(python.url) };
    fleet = parts.use(await startFleet({ machines, env: { TRUNKLINE_TIME_SCALE: String(scale) } }));
    await fleet.endpoint.untilListed("slow-list", "bare", "tiny");
  });
  afterAll(() => parts.disposeAsync());
  beforeEach(() => {
    python.onChat = sayAllWords;
  });

  test("a runtime whose model list takes three seconds keeps its models, idle or busy", async () => {
    vllm.listMs = 3_000 * scale;
    const asked = vllm.requestsTo("/v1/models").length;
    const slowLists = () => vllm.requestsTo("/v1/models").length - asked;
    while (slowLists() < 5) {
      expect((await fleet.endpoint.models()).ids).toContain("slow-list");
      expect(await fleet.endpoint.answer({ model: "slow-list", says: "Hi" })).toBe("Hello from here.");
    }
    vllm.listMs = 0;
  });

  test("a chat whose kept connection the runtime closes as it is sent is answered by the only machine", async () => {
    const chats = vllm.chats.length;
    const { onChat } = vllm;
    vllm.onChat = (chat) => (vllm.chats.length === chats + 1 ? chat.cut() : onChat(chat));
    expect(await fleet.endpoint.answer({ model: "slow-list", says: "Hi" })).toBe("Hello from here.");
    expect(vllm.chats.length).toBe(chats + 2);
    vllm.onChat = onChat;
  });

  test("a runtime of unknown kind is asked nothing while it answers, and its answer is whole", async () => {
    const stream = await fleet.endpoint.stream({ model: "tiny", says: "Hi" });
    await until(() => stream.text.includes("word3 "), { what: "the first words" });
    expect((await fleet.endpoint.models()).ids).toContain("tiny");
    await stream.over;
    // Any question in between would have ended it: this server works on one request at a time.
    expect([stream.text, stream.events.at(-1)]).toEqual([words.join(""), "[DONE]"]);
    const polled = python.requestsTo("/v1/models").length;
    await until(() => python.requestsTo("/v1/models").length > polled, { what: "the list to be asked for again" });
  });

  test("two chats at once on a server that interrupts streams are both whole", async () => {
    const both = await Promise.all([1, 2].map(() => fleet.endpoint.answer({ model: "tiny", says: "Hi" })));
    expect(both).toEqual([words.join(""), words.join("")]);
  });

  test("a 500 that names a field of the request is told as a refusal of that field", async () => {
    const response_format = { type: "json_schema", json_schema: { name: "city", schema: { type: "object" } } };
    expect(await refusalOf(fleet.endpoint.chat({ model: "tiny", says: "Hi", response_format }))).toEqual({
      status: 400,
      message: "The runtime of this model does not accept this 'response_format'.",
      type: "invalid_request_error",
      param: "response_format",
      code: "unsupported_value",
    });
  });

  test.each([true, false])("an overflow that comes as an empty 200 is told as one (stream: %s)", async (stream) => {
    const says = "x".repeat(windowCharacters);
    const { status, code, message } = await refusalOf(fleet.endpoint.chat({ model: "tiny", says, stream }));
    expect([status, code]).toEqual([400, "context_length_exceeded"]);
    expect(message).toContain(`maximum context length is ${windowCharacters} tokens`);
  });

  test("a stream that ends in [DONE] without a finish reason is a success, and the log says so once", async () => {
    bare.onChat = (chat) => {
      for (const word of words) chat.say(word);
      chat.raw("data: [DONE]\n\n");
      chat.end();
    };
    for (let times = 0; times < 2; times += 1) {
      const stream = await fleet.endpoint.stream({ model: "bare", says: "Hi" });
      await stream.over;
      expect([stream.text, stream.events.at(-1)]).toEqual([words.join(""), "[DONE]"]);
      expect(stream.events.at(-2)).toContain('"finish_reason":"stop"');
    }
    const saidSo = (await fleet.agent("cellar").logLines()).filter(({ msg }) => msg.includes("finish_reason"));
    expect(saidSo).toMatchObject([{ level: 40, runtime: "openai" }]);
  });
});
