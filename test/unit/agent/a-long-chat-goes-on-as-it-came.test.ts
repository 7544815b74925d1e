import { memoryUsage } from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { bodyWent } from "#shared/process/large-garbage.ts";
import { LongText } from "#shared/process/long-texts.ts";
import { chatBody, type ChatBody } from "#shared/protocol/chat-body.ts";
import { isPlainChatBody } from "#shared/protocol/plain-chat-body.ts";
import { readBody } from "../../../services/agent/jobs/read-body.ts";
import { readChatBody } from "../../../services/agent/jobs/read-chat-body.ts";
import { openAiChatRequest } from "../../../services/agent/runtimes/openai/openai-chat-request.ts";
import { ollamaChatRequest } from "../../../services/agent/runtimes/ollama/ollama-chat-request.ts";
import { ollamaShow } from "../../../services/agent/runtimes/ollama/ollama-model.ts";
import { mlxLm } from "../../../services/agent/runtimes/openai/mlx-lm-profile.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server-profile.ts";
import { vllm } from "../../../services/agent/runtimes/openai/vllm-profile.ts";
import type { OpenAiProfile } from "../../../services/agent/runtimes/openai/openai-profile.ts";
import { refuseIncapable } from "../../../services/agent/runtimes/refuse-incapable.ts";
import { longText, writtenIn } from "../process/texts-as-written.ts";

const wide = "“ü”".repeat(10_000);
const asked = (body: ChatBody, profile: OpenAiProfile = otherServer): ReturnType<typeof openAiChatRequest> =>
  openAiChatRequest({ profile, model: { name: "m" }, body, thinks: false, contextWindow: 100_000 });
const show = ollamaShow.parse({ capabilities: ["completion", "vision", "tools"], details: { format: "gguf" } });
const askedOfOllama = (body: ChatBody): ReturnType<typeof ollamaChatRequest> =>
  ollamaChatRequest({ entry: { name: "m", show, loaded: true }, capabilities: show.capabilities, body });
const written = (request: object): string =>
  request instanceof Uint8Array ? Buffer.from(request).toString() : JSON.stringify(request);
const sent = (body: ChatBody, profile?: OpenAiProfile): string => written(asked(body, profile));

const message = fc
  .tuple(fc.constantFrom("user", "system", "assistant"), fc.oneof(longText, fc.constant("<a long text>")), fc.nat())
  .map(([by, text, how]) => `{"role":"${by}","content":"${writtenIn(text, how)}"}`);
const body = fc
  .tuple(fc.array(message, { minLength: 1, maxLength: 3 }), fc.constantFrom("", '"n":2,"seed":7,', '"tools":[],'))
  .map(([messages, more]) => `{${more}"messages":[${[...messages, `{"role":"user","content":"${wide}"}`].join()}]}`);

test("a long chat is what reading the whole of it gives, for every runtime", () => {
  fc.assert(
    fc.property(body, (json) => {
      const bytes = Buffer.from(json);
      if (json.includes('"tools"')) expect(() => readChatBody(bytes)).toThrow("does not know a part of this request");
      else {
        const whole = readBody(chatBody, bytes, isPlainChatBody);
        const read = readChatBody(bytes);
        // What it asks of its runtime comes first: what was read once is read.
        for (const profile of [otherServer, mlxLm]) {
          const { n: _, ...once } = whole;
          const { n: _other, ...same } = read;
          expect(JSON.parse(sent(same, profile))).toEqual(JSON.parse(sent(once, profile)));
        }
        expect({ ...read }).toEqual(whole);
      }
    }),
    { numRuns: 200 },
  );
});

const said = fc.oneof(longText, fc.constantFrom("", "a", "<a long text>"));
const part = said.chain((text) =>
  fc.constantFrom(
    { type: "text", text },
    { type: "image_url", image_url: { url: text } },
    { type: "image_url", image_url: { url: text, detail: "low" } },
  ),
);
const callWith = (text: string) => ({
  id: "c",
  type: "function",
  function: { name: "f", arguments: JSON.stringify({ text }) },
});
const anyMessage = fc.oneof(
  fc.record({ role: fc.constant("user"), content: fc.oneof(said, fc.array(part, { minLength: 1, maxLength: 3 })) }),
  said.map((content) => ({ role: "tool", tool_call_id: "c", content })),
  said.map((text) => ({ role: "system", content: [{ type: "text", text }] })),
  fc.tuple(said, said).map(([text, content]) => ({ role: "assistant", content, tool_calls: [callWith(text)] })),
  fc.tuple(said, said).map(([content, thought]) => ({ role: "assistant", content, reasoning_content: thought })),
);
const anyTool = said.map((description) => ({
  type: "function",
  function: { name: "f", description, parameters: { default: { text: description } } },
}));
const anyBody = fc.record(
  {
    tools: fc.array(anyTool, { minLength: 1, maxLength: 2 }),
    messages: fc.array(anyMessage, { minLength: 1, maxLength: 4 }),
  },
  { requiredKeys: ["messages"] },
);
const chatWith = (messages: readonly unknown[], more: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ ...more, messages: [...messages, { role: "user", content: wide }] }));

test("so is one with images, tools, calls and thoughts, wherever its long texts stand", () => {
  fc.assert(
    fc.property(anyBody, ({ messages, tools }) => {
      const bytes = chatWith(messages, tools && { tools });
      const whole = readBody(chatBody, bytes, isPlainChatBody);
      const read = readChatBody(bytes);
      const [asWhole, asRead] = [outcomes(whole), outcomes(read)];
      expect(asRead).toEqual(asWhole);
      expect({ ...read }).toEqual(whole);
    }),
    { numRuns: 150 },
  );
});

test("a text that is put together of parts is never taken for one that another stands for", () => {
  const parts = (...texts: readonly string[]) => ({
    role: "user",
    content: texts.map((text) => ({ type: "text", text })),
  });
  const bytes = chatWith([parts("x", wide), parts("<a long", " text>")]);
  const { messages } = JSON.parse(sent(readChatBody(bytes)));
  expect(messages.map(({ content }: { content: string }) => content)).toEqual([`x${wide}`, "<a long text>", wide]);
});

/** What runtimes are sent, or why they are sent nothing. */
function outcomes(chat: ChatBody): unknown[] {
  const requests = [
    ...[otherServer, vllm, mlxLm].map((profile) => () => asked(chat, profile)),
    () => askedOfOllama(chat),
  ];
  return requests.map((request) => {
    try {
      return JSON.parse(written(request()));
    } catch (error) {
      return String(error);
    }
  });
}

test("images go to an OpenAI-shaped server as they came, beside tools and what these said", () => {
  const read = vi.spyOn(LongText.prototype, "read");
  onTestFinished(() => read.mockRestore());
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(20_000)}`, detail: "low" } };
  const messages = [
    { role: "user", content: [{ type: "text", text: "What is this?" }, image, { type: "text", text: wide }, image] },
    { role: "assistant", content: "I look.", tool_calls: [callWith("y".repeat(3_000))] },
    { role: "tool", tool_call_id: "c", content: wide },
    { role: "user", content: [{ type: "text", text: wide }] },
  ];
  const tools = [{ type: "function", function: { name: "f", description: "d".repeat(3_000) } }];
  const chat = readChatBody(chatWith(messages, { tools }));
  expect(asked(chat)).toBeInstanceOf(Uint8Array);
  const [looked, , answered] = JSON.parse(sent(chat)).messages;
  expect([looked, answered]).toEqual([messages[0], messages[2]]);
  expect(read).not.toHaveBeenCalled();
});

test("the texts of a long chat go to a model server as they came, and are not read for it", () => {
  const read = vi.spyOn(LongText.prototype, "read");
  onTestFinished(() => read.mockRestore());
  const text = `caf\\u00e9 \\/ ${wide}`;
  const chat = readChatBody(Buffer.from(`{"seed":1,"messages":[{"role":"user","content":"${text}"}]}`));
  refuseIncapable({
    model: "m",
    capabilities: { completion: true, vision: false, embedding: false, tools: false, thinking: false },
    body: chat,
  });
  expect(askedOfOllama(chat)).toBeInstanceOf(Uint8Array);
  expect(asked(chat)).toBeInstanceOf(Uint8Array);
  expect(sent(chat)).toContain(`"messages":[{"role":"user","content":"${text}"}],"stream":true`);
  expect(read).not.toHaveBeenCalled();
  expect(chat.messages[0]?.content).toBe(`café / ${wide}`);
});

test("of long chats that are over nothing is held until all of the heap is gone through", async () => {
  const image = { type: "image_url", image_url: { url: "A".repeat(600_000) } };
  const chat = chatWith([
    { role: "user", content: "x".repeat(600_000) },
    { role: "user", content: [image] },
  ]);
  const before = memoryUsage().arrayBuffers;
  let most = 0;
  for (let round = 0; round < 40; round += 1) {
    asked(readChatBody(Buffer.from(chat)));
    bodyWent(chat.byteLength);
    await nextTurn();
    most = Math.max(most, memoryUsage().arrayBuffers - before);
  }
  expect(most).toBeLessThan(15 * chat.byteLength);
});
