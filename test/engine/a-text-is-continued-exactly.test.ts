import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { byteTokens } from "../harness/tiny-gguf.ts";
import { noEngine, only, saidIn, TinyRuntime } from "./tiny-runtime.ts";

const script = ["alpha", " beta", " ", ...byteTokens("😀é"), " delta"];

describe.skipIf(noEngine)("a text is continued exactly", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    tiny = await TinyRuntime.start({
      name: "tiny-text",
      scripts: { "<|assistant|>": script },
      contextTokens: 64,
    });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test("a text is continued exactly without a template, from where it breaks off", async () => {
    const events = await tiny.continued({ prompt: "alpha beta" });
    expect(saidIn(events)).toBe(" 😀é delta");
    expect(only(events, "finish")?.reason).toBe("stop");
    expect(only(events, "usage")).toMatchObject({ promptTokens: 2, completionTokens: script.length - 2 });
  });

  test("a text is continued exactly with the model's marks read as such: who sends a bare text writes them", async () => {
    const events = await tiny.continued({ prompt: "<|user|>x<|assistant|>" });
    expect(saidIn(events)).toBe("alpha beta 😀é delta");
    expect(only(events, "usage")?.promptTokens).toBe(3);
  });

  test("up to its limit, or exactly up to a stop string", async () => {
    const limited = await tiny.continued({ prompt: "<|assistant|>", max_tokens: 2 });
    expect([saidIn(limited), only(limited, "finish")?.reason]).toEqual(["alpha beta", "length"]);
    const stopped = await tiny.continued({ prompt: "<|assistant|>", stop: ["a b"] });
    expect([saidIn(stopped), only(stopped, "finish")?.reason]).toEqual(["alph", "stop"]);
    // And no further.
    expect(only(stopped, "usage")?.completionTokens).toBe(2);
  });

  test("a text is continued exactly and refused where it leaves no room, with both numbers", async () => {
    await expect(tiny.continued({ prompt: "x".repeat(64) })).rejects.toMatchObject({
      code: "context_length_exceeded",
      param: "prompt",
      message: expect.stringMatching(/is 64 tokens.*resulted in 64/),
    });
  });

  test("a text is continued exactly and refused where there is nothing to go on from", async () => {
    await expect(tiny.continued({ prompt: "" })).rejects.toMatchObject({ code: "invalid_value", param: "prompt" });
  });

  test.each([
    ["logprobs", { logprobs: 1 }],
    ["suffix", { suffix: "}" }],
  ])("a text is continued exactly and refused with what cannot be honoured: %s", async (param, wish) => {
    await expect(tiny.continued({ prompt: "alpha", ...wish })).rejects.toMatchObject({
      code: "unsupported_parameter",
      param,
    });
  });

  test("a text is continued exactly and left at once when nobody waits for it", async () => {
    await using endless = await TinyRuntime.start({
      name: "tiny-endless",
      scripts: { "<|assistant|>": ["one", " two"] },
      endless: true,
      contextTokens: 100_000,
    });
    const abort = new AbortController();
    const reason = new Error("nobody waits");
    let heard = 0;
    const onProgress = (): void => {
      heard += 1;
      if (heard === 20) abort.abort(reason);
    };
    await expect(endless.continued({ prompt: "one", signal: abort.signal, onProgress })).rejects.toBe(reason);
    expect(heard).toBeLessThan(30);
  });
});

describe.skipIf(noEngine)("a gap is filled in", () => {
  const marks = { "<|fim_prefix|>": [], "<|fim_suffix|>": [] };

  test("a gap is filled in by a model that was made for it, for which the text in it holds no marks", async () => {
    await using tiny = await TinyRuntime.start({
      name: "tiny-gap",
      scripts: { ...marks, "<|fim_middle|>": ["return", " 1"] },
    });
    const events = await tiny.continued({ prompt: "a", suffix: "b" });
    expect(saidIn(events)).toBe("return 1");
    expect(only(events, "usage")?.promptTokens).toBe(5);
    const marked = await tiny.continued({ prompt: "<|end|>", suffix: "b" });
    expect(only(marked, "usage")?.promptTokens).toBe(4 + "<|end|>".length);
  });
});
