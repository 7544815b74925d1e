import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ChatMessage } from "#shared/protocol/job-bodies.ts";
import {
  prefixesOfChat,
  prefixesOfTexts,
  type PromptPrefixes,
} from "../../../services/gateway/fleet/prompt-prefixes.ts";
import { prefixesKeptMax, WarmCaches } from "../../../services/gateway/fleet/warm-caches.ts";

const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });
const system = (content: string): ChatMessage => ({ role: "system", content });
const long = "You are a helpful assistant. ".repeat(100);

const chat = (...messages: ChatMessage[]): PromptPrefixes => prefixesOfChat("llama3", { messages });
const boot = (machine: string, epoch = "1") => ({ machine, epoch });
const minuteMs = 60_000;

/** The machines that know how this begins, after `attic` has answered that. */
function after(answered: PromptPrefixes, asked: PromptPrefixes): readonly string[] {
  const caches = new WarmCaches();
  caches.answered(answered, boot("attic"), 0);
  return [...caches.knowing(asked, 1).keys()];
}

describe("a machine is taken to know how a request begins", () => {
  const first = chat(user("Hello"));
  test.each<[string, PromptPrefixes, PromptPrefixes]>([
    ["that goes on with a conversation", first, chat(user("Hello"), assistant("Hi!"), user("How are you?"))],
    [
      "after a tool was called",
      chat(system("Be short."), user("What time is it?")),
      chat(
        system("Be short."),
        user("What time is it?"),
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "1", type: "function", function: { name: "clock", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "1", content: "12:00" },
      ),
    ],
    [
      "that goes back to an earlier turn and says something else",
      chat(user("a"), assistant("b"), user("c")),
      chat(user("a"), assistant("b"), user("c"), assistant("another answer"), user("d")),
    ],
    ["with the same long system prompt", chat(system(long), user("a")), chat(system(long), user("b"))],
    ["that is long and is asked again", chat(user(long)), chat(user(long))],
    [
      "that continues the same text",
      prefixesOfTexts("llama3", { prompts: [`${long}const a`] }),
      prefixesOfTexts("llama3", { prompts: [`${long}const ab`] }),
    ],
  ])("%s", (_, answered, asked) => {
    expect(after(answered, asked)).toEqual(["attic"]);
  });

  test.each<[string, PromptPrefixes, PromptPrefixes]>([
    ["that is short and begins alike", first, chat(user("Hello"))],
    ["with the same short system prompt", chat(system("Be short."), user("a")), chat(system("Be short."), user("b"))],
    ["of another conversation", chat(user("a")), chat(user("b"), assistant("c"), user("d"))],
    ["for another model", prefixesOfChat("other", { messages: [user(long)] }), chat(user(long))],
    [
      "with other tools",
      prefixesOfChat("llama3", { messages: [user(long)], tools: [{ type: "function", function: { name: "clock" } }] }),
      chat(user(long)),
    ],
    [
      "with another image",
      chat(
        { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${long}A` } }] },
        assistant("A cat."),
        user("Sure?"),
      ),
      chat(
        { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${long}B` } }] },
        assistant("A cat."),
        user("Sure?"),
        assistant("Yes."),
        user("Really?"),
      ),
    ],
  ])("but not one %s", (_, answered, asked) => {
    expect(after(answered, asked)).toEqual([]);
  });

  test("whatever was said so far, as long as it was said there", () => {
    const words = fc.array(fc.tuple(fc.string(), fc.string()), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(words, fc.string(), (turns, next) => {
        const messages = turns.flatMap(([asked, answered]) => [user(asked), assistant(answered)]);
        expect(after(chat(...messages.slice(0, -1)), chat(...messages, user(next)))).toEqual(["attic"]);
      }),
    );
  });
});

describe("the memory of prompts", () => {
  test("is nothing of their text, and no more for a long one than for a short one", () => {
    const secret = "the combination is 12345";
    const prefixes = chat(
      system(long + secret),
      ...Array.from({ length: 200 }, () => [user(secret), assistant(secret)]).flat(),
    );
    expect(JSON.stringify(prefixes)).not.toContain("combination");
    expect(prefixes.known.length + prefixes.left.length).toBeLessThanOrEqual(18);
    for (const each of [...prefixes.known, ...prefixes.left]) expect(each).toMatch(/^[\w.]{1,30}$/);
  });

  test("a prompt of one key is not known to another key, and a prompt without a key is known to all that share", () => {
    const asked = chat(user("a"));
    const next = chat(user("a"), assistant("b"), user("c"));
    expect(after({ ...asked, keyId: "ann" }, { ...next, keyId: "ann" })).toEqual(["attic"]);
    expect(after({ ...asked, keyId: "ann" }, { ...next, keyId: "bob" })).toEqual([]);
    expect(after({ ...asked, keyId: "ann" }, next)).toEqual([]);
    expect(after(asked, next)).toEqual(["attic"]);
  });

  test("is the machine that answered the longest part last, as the boot that it was", () => {
    const caches = new WarmCaches();
    const [one, two] = [chat(user("a")), chat(user("a"), assistant("b"), user("c"))];
    const three = chat(user("a"), assistant("b"), user("c"), assistant("d"), user("e"));
    caches.answered(one, boot("attic"), 0);
    caches.answered(two, boot("cellar", "7"), 1);
    expect(caches.knowing(three, 2)).toEqual(new Map([["cellar", "7"]]));
    expect(caches.knowing(two, 2)).toEqual(new Map([["attic", "1"]]));
  });

  test("is of use for ten minutes, and of so many prompts at most", () => {
    const caches = new WarmCaches();
    const next = (name: string): PromptPrefixes => chat(user(name), assistant("b"), user("c"));
    caches.answered(chat(user("first")), boot("attic"), 0);
    expect(caches.knowing(next("first"), 10 * minuteMs).size).toBe(1);
    expect(caches.knowing(next("first"), 10 * minuteMs + 1).size).toBe(0);
    for (let each = 0; each < prefixesKeptMax; each += 1) caches.answered(chat(user(`${each}`)), boot("attic"), 0);
    expect(caches.size).toBe(prefixesKeptMax);
    expect(caches.knowing(next("first"), 1).size).toBe(0);
    expect(caches.knowing(next("0"), 1).size).toBe(1);
  });

  test("is of those prompts that were used last, however often they were", () => {
    const caches = new WarmCaches();
    const next = (name: string): PromptPrefixes => chat(user(name), assistant("b"), user("c"));
    for (let each = 0; each < 3 * prefixesKeptMax; each += 1) {
      caches.answered(chat(user(`${each}`)), boot("attic"), 0);
      if (each % 6_000 === 0) caches.answered(chat(user("again")), boot("attic"), 0);
      if (each % 1_000 === 0) expect(caches.knowing(next("again"), 0).size).toBe(1);
    }
    expect(caches.size).toBe(prefixesKeptMax);
    const kept = Array.from({ length: 3 * prefixesKeptMax }, (_, each) => caches.knowing(next(`${each}`), 0).size);
    expect(kept.lastIndexOf(0)).toBe(2 * prefixesKeptMax);
    expect(kept.indexOf(1)).toBe(2 * prefixesKeptMax + 1);
  });

  test("is of eight machines at most for what all of them share", () => {
    const caches = new WarmCaches();
    const shared = chat(system(long), user("a"));
    for (let machine = 0; machine < 20; machine += 1) caches.answered(shared, boot(`gpu-${machine}`), machine);
    expect([...caches.knowing(chat(system(long), user("b")), 20).keys()]).toEqual(
      [12, 13, 14, 15, 16, 17, 18, 19].map((machine) => `gpu-${machine}`),
    );
  });
});
