import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ChatMessage, ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { countsKeptMax, CountedPrompts } from "../../../services/gateway/routing/counted-prompts.ts";
import { blocksKeptMax, blocksOfAllMax, MachineCaches } from "../../../services/gateway/routing/machine-caches.ts";
import {
  blockBytes,
  blocksOfChat,
  blocksOfText,
  promptBlocksMax,
  saltOf,
  type PromptBlocks,
} from "../../../services/gateway/routing/prompt-blocks.ts";
import type { Target } from "../../../services/gateway/fleet/roster.ts";

const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });
const system = (content: string): ChatMessage => ({ role: "system", content });
const long = (nonce: string): string => `${nonce}. You are a helpful assistant. `.repeat(100);
const clock: ToolDefinition = { type: "function", function: { name: "clock" } };

const seed = 7;
const chat = (...messages: ChatMessage[]): PromptBlocks => blocksOfChat({ messages }, seed);
const attic = { machine: "attic", epoch: "1" };
const minuteMs = 60_000;

/** Notes that a machine got a prompt. */
function enter(
  caches: MachineCaches,
  target: Target,
  { blocks }: PromptBlocks,
  salt: number,
  nowMs: number,
  isOwn = true,
): void {
  caches.placed(target, { blocks, salt }, { nowMs, isOwn });
}

/** The share of a prompt that a machine is expected to have after it got another. */
function sharedPart(before: PromptBlocks, next: PromptBlocks): number {
  const caches = new MachineCaches();
  enter(caches, attic, before, 1, 0);
  return caches.expected(attic, next, 1, 1).blocks / next.blocks.length;
}

const image = (url: string): ChatMessage => ({ role: "user", content: [{ type: "image_url", image_url: { url } }] });
const called: ChatMessage = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "1", type: "function", function: { name: "clock", arguments: "{}" } }],
};
test.each<[string, PromptBlocks, PromptBlocks, number]>([
  ["all of it, when it is asked again", chat(user(long("a"))), chat(user(long("a"))), 1],
  [
    "the turn before, when the conversation goes on",
    chat(user(long("a"))),
    chat(user(long("a")), assistant("Hi!"), user("How are you?")),
    0.97,
  ],
  [
    "the turn before a call of a tool",
    chat(user(long("a"))),
    chat(user(long("a")), called, { role: "tool", tool_call_id: "1", content: "12:00" }),
    0.97,
  ],
  [
    "the earlier turns, when the user goes back",
    chat(user(long("a")), assistant("b"), user("c")),
    chat(user(long("a")), assistant("another answer"), user("c")),
    0.97,
  ],
  ["the same system prompt", chat(system(long("a")), user("one")), chat(system(long("a")), user("two")), 0.97],
  [
    "the beginning of one message, such as a document before a question",
    chat(user(`${long("a")}${long("b")}`)),
    chat(user(`${long("a")}${long("c")}`)),
    0.5,
  ],
  ["the text that is continued", blocksOfText(long("a"), seed), blocksOfText(`${long("a")}b`, seed), 1],
])("a machine that got a prompt is expected to have %s", (_, before, next, share) => {
  expect(sharedPart(before, next)).toBeCloseTo(share, 1);
});

test.each<[string, PromptBlocks, PromptBlocks]>([
  ["another conversation", chat(user(long("a"))), chat(user(long("b")))],
  ["the same text from another role", chat(user(long("a"))), chat(system(long("a")))],
  [
    "the same messages with other tools",
    chat(user(long("a"))),
    blocksOfChat({ messages: [user(long("a"))], tools: [clock] }, seed),
  ],
  [
    "another image",
    chat(image("data:image/png;base64,AA=="), user(long("a"))),
    chat(image("data:image/png;base64,AB=="), user(long("a"))),
  ],
  ["the prompt of a site with another secret", chat(user(long("a"))), blocksOfChat({ messages: [user(long("a"))] }, 8)],
])("a machine that got a prompt is expected to have nothing of %s", (_, before, next) => {
  expect(sharedPart(before, next)).toBe(0);
});

test("a machine that got a prompt is expected to have the whole of each turn before, whatever is said", () => {
  const texts = fc.array(fc.tuple(fc.string({ maxLength: 200 }), fc.string({ maxLength: 200 })), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(texts, fc.string(), (turns, next) => {
      const messages = turns.flatMap(([asked, answered]) => [user(asked), assistant(answered)]);
      const before = chat(...messages.slice(0, -1));
      const caches = new MachineCaches();
      enter(caches, attic, before, 1, 0);
      const { blocks } = caches.expected(attic, chat(...messages, user(next)), 1, 1);
      expect(blocks).toBeGreaterThanOrEqual(before.blocks.length);
    }),
  );
});

test("the blocks of a prompt are hashes of its text, one for each 64 bytes and no more than promptBlocksMax", () => {
  const { blocks, bytes } = blocksOfText("a".repeat(1_000), seed);
  expect([blocks.length, bytes]).toEqual([15, 1_000]);
  expect(new Set(blocks).size).toBe(15);
  const huge = blocksOfText("a".repeat((promptBlocksMax + 10) * blockBytes), seed);
  expect(huge.blocks.length).toBe(promptBlocksMax);
});

test("the blocks of a prompt are the same however a message is divided into parts", () => {
  const words = fc.string({ unit: fc.constantFrom("a", "é", "漢", "😀"), maxLength: 50 });
  fc.assert(
    fc.property(fc.array(words), words, (parts, last) => {
      const texts = [...parts, "漢😀".repeat(20_000), last];
      const content = texts.map((text) => ({ type: "text" as const, text }));
      expect(chat({ role: "user", content })).toEqual(chat(user(texts.join(""))));
    }),
    { numRuns: 20 },
  );
});

test("the blocks of a prompt of two models, or of two keys that do not share, are not the same", () => {
  const salts = [saltOf("a"), saltOf("b"), saltOf("a", "ann"), saltOf("a", "bob"), saltOf("aann")];
  expect(new Set(salts).size).toBe(5);
  const caches = new MachineCaches();
  enter(caches, attic, chat(user(long("a"))), saltOf("a", "ann"), 0);
  expect(caches.expected(attic, chat(user(long("a"))), saltOf("a", "bob"), 0).blocks).toBe(0);
});

const prompt = (nonce: string): PromptBlocks => chat(user(long(nonce.padEnd(8))));
const known = (caches: MachineCaches, nonce: string, nowMs = 0): number =>
  caches.expected(attic, prompt(nonce), 1, nowMs).blocks;

test("the memory of a machine's prompts ends with its boot", () => {
  const caches = new MachineCaches();
  enter(caches, attic, prompt("a"), 1, 0);
  expect(caches.expected({ ...attic, epoch: "2" }, prompt("a"), 1, 0).blocks).toBe(0);
  enter(caches, { ...attic, epoch: "2" }, prompt("b"), 1, 0);
  expect(known(caches, "a")).toBe(0);
  enter(caches, attic, prompt("a"), 1, 0, false);
  expect(known(caches, "a")).toBe(0);
  // The clock of a machine may have been set back, and this gateway knows whom it asks.
  enter(caches, attic, prompt("a"), 1, 0);
  expect(known(caches, "a")).toBe(prompt("a").blocks.length);
});

test("the memory of a machine's prompts lasts ten minutes where the machine reports no cached tokens, and longer where it does", () => {
  const caches = new MachineCaches();
  enter(caches, attic, prompt("a"), 1, 0);
  expect(known(caches, "a", 10 * minuteMs)).toBeGreaterThan(0);
  expect(known(caches, "a", 10 * minuteMs + 1_000)).toBe(0);
  caches.proved(attic, { blocks: 0, ageMs: 0 }, 0);
  expect(known(caches, "a", 60 * minuteMs)).toBeGreaterThan(0);
});

test("the memory of a machine's prompts is of so many blocks at most, and the end of the prompt that was used the longest ago goes first", () => {
  const caches = new MachineCaches();
  const size = prompt("a").blocks.length;
  enter(caches, attic, prompt("first"), 1, 0);
  for (let each = 0; (each + 1) * size < blocksKeptMax; each += 1) enter(caches, attic, prompt(`${each}`), 1, 0);
  expect(caches.sizeOf("attic")).toBe(blocksKeptMax);
  expect(known(caches, "first")).toBeGreaterThan(0);
  expect(known(caches, "first")).toBeLessThan(prompt("first").blocks.length);
  expect(known(caches, "0")).toBe(prompt("0").blocks.length);
});

test("the memory of a machine's prompts shrinks when a machine had less than expected, and grows again when it has all", () => {
  const caches = new MachineCaches();
  for (let each = 0; each < 20; each += 1) enter(caches, attic, prompt(`${each}`), 1, 0);
  const before = caches.sizeOf("attic");
  caches.proved(attic, { blocks: known(caches, "0", 5_000), ageMs: 5_000 }, 0);
  expect(caches.sizeOf("attic")).toBe(Math.floor(0.9 * before));
  expect(known(caches, "0", 5_000)).toBe(0);
  expect(known(caches, "19", 5_000)).toBe(prompt("19").blocks.length);
  for (let hit = 0; hit < 10; hit += 1) {
    caches.proved(attic, { blocks: 50, ageMs: 5_000 }, 50);
    enter(caches, attic, prompt(`new ${hit}`), 1, 6_000);
  }
  expect(caches.sizeOf("attic")).toBeGreaterThan(before);
});

test("the memory of a machine's prompts of all machines is bounded, and the machine that got no prompt for longest is forgotten first", () => {
  const caches = new MachineCaches();
  for (let machine = 0; machine < 70; machine += 1) {
    for (let each = 0; each < 5; each += 1) {
      const blocks = Int32Array.from({ length: 8_000 }, (_, at) => 7_919 * at + 1_000_003 * each);
      caches.placed({ machine: `gpu-${machine}`, epoch: "1" }, { blocks, salt: each }, { nowMs: 0, isOwn: true });
    }
  }
  expect(caches.size).toBeLessThanOrEqual(blocksOfAllMax);
  expect([caches.sizeOf("gpu-0"), caches.sizeOf("gpu-69")]).toEqual([0, blocksKeptMax]);
});

test("the memory of a machine's prompts does not shrink for a prompt that was placed just before, since it may not be computed yet", () => {
  const caches = new MachineCaches();
  enter(caches, attic, prompt("a"), 1, 0);
  caches.proved(attic, { blocks: known(caches, "a"), ageMs: 1_000 }, 0);
  expect(caches.sizeOf("attic")).toBe(prompt("a").blocks.length);
});

test("the memory of a machine's prompts finds those of many machines that have most of a prompt", () => {
  const caches = new MachineCaches();
  enter(caches, { machine: "none", epoch: "1" }, prompt("b"), 1, 0);
  enter(caches, { machine: "half", epoch: "1" }, chat(user(long("a"))), 1, 0);
  const whole = chat(user(`${long("a")}${long("b")}`));
  enter(caches, { machine: "all", epoch: "1" }, whole, 1, 0);
  const warmest = (count: number, machines = ["all", "half", "none", "new"]): readonly string[] =>
    caches.warmest(machines, { prompt: whole, salt: 1, count }, 0);
  expect(warmest(5)).toEqual(["all", "half"]);
  expect(warmest(1)).toEqual(["all"]);
  expect(warmest(1, ["none", "half"])).toEqual(["half"]);
});

const [one, two] = [chat(user("a")), chat(user("a"), assistant("b"), user("c"))];
const three = chat(user("a"), assistant("b"), user("c"), assistant("d"), user("e"));

test("the tokens that machines counted are those of the longest turn that was counted, for the same key and model", () => {
  const counts = new CountedPrompts();
  counts.counted(one, "m", 10);
  expect(counts.longest(three, "m")).toEqual({ at: 1, promptTokens: 10 });
  counts.counted(two, "m", 20);
  expect(counts.longest(three, "m")).toEqual({ at: 0, promptTokens: 20 });
  expect(counts.longest(three, "other")).toBeUndefined();
  expect(counts.longest({ ...three, keyId: "ann" }, "m")).toBeUndefined();
});

test("the tokens that machines counted are of so many prompts at most, the latest", () => {
  const counts = new CountedPrompts();
  const next = (name: string): PromptBlocks => chat(user(name), assistant("b"), user("c"));
  for (let each = 0; each <= countsKeptMax; each += 1) counts.counted(chat(user(`${each}`)), "m", each);
  expect(counts.size).toBe(countsKeptMax);
  expect(counts.longest(next("0"), "m")).toBeUndefined();
  expect(counts.longest(next("1"), "m")?.promptTokens).toBe(1);
});
