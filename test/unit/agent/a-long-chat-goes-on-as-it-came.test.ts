import { memoryUsage } from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { largeBodyWent } from "#shared/process/large-garbage.ts";
import { LongText } from "#shared/process/long-texts.ts";
import { chatBody, type ChatBody } from "#shared/protocol/chat-body.ts";
import { isPlainChatBody } from "#shared/protocol/plain-chat-body.ts";
import { readBody } from "../../../services/agent/jobs/read-body.ts";
import { readChatBody } from "../../../services/agent/jobs/read-chat-body.ts";
import { openAiChatRequest } from "../../../services/agent/runtimes/openai/openai-chat-request.ts";
import { mlxLm } from "../../../services/agent/runtimes/openai/mlx-lm-profile.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server-profile.ts";
import type { OpenAiProfile } from "../../../services/agent/runtimes/openai/openai-profile.ts";
import { refuseIncapable } from "../../../services/agent/runtimes/refuse-incapable.ts";
import { longText, writtenIn } from "../process/texts-as-written.ts";

const wide = "“ü”".repeat(10_000);
const asked = (body: ChatBody, profile: OpenAiProfile = otherServer): ReturnType<typeof openAiChatRequest> =>
  openAiChatRequest({ profile, model: { name: "m" }, body, thinks: false, contextWindow: 100_000 });
const sent = (body: ChatBody, profile?: OpenAiProfile): string => {
  const request = asked(body, profile);
  return request instanceof Uint8Array ? Buffer.from(request).toString() : JSON.stringify(request);
};

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

test("the texts of a long chat go to an OpenAI-shaped server as they came, and are not read for it", () => {
  const read = vi.spyOn(LongText.prototype, "read");
  onTestFinished(() => read.mockRestore());
  const text = `caf\\u00e9 \\/ ${wide}`;
  const chat = readChatBody(Buffer.from(`{"seed":1,"messages":[{"role":"user","content":"${text}"}]}`));
  refuseIncapable({
    model: "m",
    capabilities: { completion: true, vision: false, embedding: false, tools: false, thinking: false },
    body: chat,
  });
  expect(asked(chat)).toBeInstanceOf(Uint8Array);
  expect(sent(chat)).toContain(`"messages":[{"role":"user","content":"${text}"}],"stream":true`);
  expect(read).not.toHaveBeenCalled();
  expect(chat.messages[0]?.content).toBe(`café / ${wide}`);
});

test("of long chats that are over nothing is held until all of the heap is gone through", async () => {
  const chat = Buffer.from(JSON.stringify({ messages: [{ role: "user", content: "x".repeat(1_200_000) }] }));
  const before = memoryUsage().arrayBuffers;
  let most = 0;
  for (let round = 0; round < 40; round += 1) {
    asked(readChatBody(Buffer.from(chat)));
    largeBodyWent(chat.byteLength);
    await nextTurn();
    most = Math.max(most, memoryUsage().arrayBuffers - before);
  }
  expect(most).toBeLessThan(15 * chat.byteLength);
});
