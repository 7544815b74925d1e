import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { byteTokens } from "../harness/tiny-gguf.ts";
import { type Asked, noEngine, only, saidIn, TinyRuntime } from "./tiny-runtime.ts";

const script = ["alpha", " beta", " gamma", " ", ...byteTokens("😀é"), " delta", "!"];
const whole = "alpha beta gamma 😀é delta!";

describe.skipIf(noEngine)("a script is answered exactly", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    tiny = await TinyRuntime.start({ name: "tiny-script", scripts: { "<|assistant|>": script } });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test("token by token, with characters whole that came in several tokens", async () => {
    const batches = await Array.fromAsync(tiny.batches());
    const texts = batches.map((events) => saidIn(events)).filter((text) => text !== "");
    expect(texts).toEqual(["alpha", " beta", " gamma", " ", "😀", "é", " delta", "!"]);
  });

  test("a script is answered exactly and counted exactly", async () => {
    const events = await tiny.events({ says: "?" });
    expect(saidIn(events)).toBe(whole);
    expect(only(events, "finish")?.reason).toBe("stop");
    // The user's mark, the question, the end's mark, the assistant's mark.
    expect(only(events, "usage")).toMatchObject({ promptTokens: 4, completionTokens: script.length });
  });

  test("a prompt that was read before is remembered, and counted as cached", async () => {
    await tiny.events({ says: "the same again" });
    const usage = only(await tiny.events({ says: "the same again" }), "usage");
    expect(usage?.cachedTokens).toBe((usage?.promptTokens ?? 0) - 1);
  });

  test("up to the limit of tokens, and told so", async () => {
    const events = await tiny.events({ max_tokens: 3 });
    expect([saidIn(events), only(events, "finish")?.reason]).toEqual(["alpha beta gamma", "length"]);
    expect(only(events, "usage")?.completionTokens).toBe(3);
  });

  test("a character that the limit cuts in two is not passed off as whole", async () => {
    expect(saidIn(await tiny.events({ max_tokens: 6 }))).toBe("alpha beta gamma ");
  });

  test("up to a stop string, also one that spans tokens", async () => {
    const events = await tiny.events({ stop: ["ta g"] });
    expect([saidIn(events), only(events, "finish")?.reason]).toEqual(["alpha be", "stop"]);
    expect(only(events, "usage")?.completionTokens).toBe(3);
  });

  test("an answer that has begun goes on where it was", async () => {
    const messages = [
      { role: "user" as const, content: "Hi" },
      { role: "assistant" as const, content: "alpha beta" },
    ];
    expect(saidIn(await tiny.events({ messages }))).toBe(" gamma 😀é delta!");
  });

  test("a bias on a token changes what follows", async () => {
    // After three tokens of the tokenizer's own, the bytes, five marks, and alpha.
    const beta = 3 + 256 + 5 + 1;
    const events = await tiny.events({ logit_bias: { [beta]: -100 }, max_tokens: 2 });
    expect(saidIn(events)).not.toContain("beta");
    await expect(tiny.events({ logit_bias: { 999999: 1 } })).rejects.toMatchObject({ param: "logit_bias" });
  });

  test("a request that the engine cannot honour is refused by its name", async () => {
    await expect(tiny.events({ logprobs: true })).rejects.toMatchObject({
      code: "unsupported_parameter",
      param: "logprobs",
    });
  });

  test("user text never becomes a control token", async () => {
    // As the token, it would make the script begin in the middle of the question, and the count smaller.
    const steering = only(await tiny.events({ says: "x<|end|>" }), "usage")?.promptTokens ?? 0;
    expect(steering).toBe(4 + "<|end|>".length);
  });
});

describe.skipIf(noEngine)("a model that rolls dice", () => {
  test("a model that rolls dice says the same again with the same seed, and something else with another", async () => {
    await using tiny = await TinyRuntime.start({ name: "noise", scripts: { "<|assistant|>": [] }, noise: 7 });
    const say = async (seed: number): Promise<string> =>
      saidIn(await tiny.events({ temperature: 1, top_p: 1, seed, max_tokens: 40 }));
    const [first, again, other, negative] = [await say(1), await say(1), await say(2), await say(-5)];
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    expect(await say(-5)).toBe(negative);
  });

  test("a model that rolls dice takes the likeliest token with `top_k` 1 or `min_p` 1, and another one with a penalty on what was said", async () => {
    await using tiny = await TinyRuntime.start({ name: "noise", scripts: { "<|assistant|>": [] }, noise: 7 });
    const say = async (fields: Asked): Promise<string> => saidIn(await tiny.events({ ...fields, max_tokens: 60 }));
    const dice = { temperature: 1, top_p: 1 };
    const likeliest = await say({ temperature: 0 });
    for (const greedy of [{ top_k: 1 }, { min_p: 1 }]) {
      expect(await say({ ...dice, ...greedy, seed: 1 })).toBe(likeliest);
      expect(await say({ ...dice, ...greedy, seed: 2 })).toBe(likeliest);
    }
    expect(await say({ ...dice, top_k: 0, min_p: 0, seed: 1 })).not.toBe(likeliest);
    expect(await say({ temperature: 0, repeat_penalty: 10 })).not.toBe(likeliest);
    await expect(say({ typical_p: 0.5 })).rejects.toMatchObject({ code: "unsupported_parameter", param: "typical_p" });
  });
});
