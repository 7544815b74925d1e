import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { noEngine, only, saidIn, TinyRuntime } from "./tiny-runtime.ts";

const windowTokens = 64;

describe.skipIf(noEngine)("a window is never overrun", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const endless = { name: "endless", scripts: { "<|assistant|>": ["tick ", "tock "] }, endless: true };
    tiny = await TinyRuntime.start({ ...endless, contextTokens: windowTokens });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test("the offered window is the one that runs", async () => {
    const [described] = await tiny.runtime.catalogue(new AbortController().signal);
    expect(described?.contextTokens).toBe(windowTokens);
  });

  test("an answer that meets the end of the window ends there, and says so", async () => {
    const events = await tiny.events();
    expect(only(events, "finish")?.reason).toBe("length");
    const { promptTokens = 0, completionTokens = 0 } = only(events, "usage") ?? {};
    expect(promptTokens + completionTokens).toBe(windowTokens);
    expect(saidIn(events)).toBe("tick tock ".repeat(completionTokens).slice(0, completionTokens * 5));
  });

  test("a prompt that leaves room for two tokens is answered with two", async () => {
    const events = await tiny.events({ says: "x".repeat(windowTokens - 5) });
    expect(only(events, "usage")).toMatchObject({ promptTokens: windowTokens - 2, completionTokens: 2 });
  });

  test("a prompt that leaves no room is refused with both numbers", async () => {
    await expect(tiny.events({ says: "x".repeat(windowTokens) })).rejects.toMatchObject({
      code: "context_length_exceeded",
      param: "messages",
      message: expect.stringMatching(new RegExp(`\\b${windowTokens}\\b.*\\b${windowTokens + 3}\\b`)),
    });
  });
});
