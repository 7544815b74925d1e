import { describe, expect, test } from "vitest";
import { until } from "../../harness/until.ts";
import { normal, normalWithUsage, odd } from "./recorded-answers.ts";
import { toClient } from "./short-form.ts";
import { ollamaStage } from "./stage.ts";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

/** Times of the wire, a status that is held back among them, are a fifth of what they are. */
const timeScale = "0.2";
const on = staged({
  ...everyRuntime,
  "Ollama, native": () => ollamaStage({ engine: "native" }),
  "slow Ollama": () => ollamaStage({}, { TRUNKLINE_TIME_SCALE: timeScale }),
});
const every = Object.keys(everyRuntime) as RuntimeName[];

describe("whichever runtime answers, its client", () => {
  test.each(every)("gets the same stream from %s, with the usage only where it is asked for", async (runtime) => {
    expect(await on(runtime).streamed(odd[runtime])).toBe(normal);
    expect(await on(runtime).streamed(odd[runtime], { stream_options: { include_usage: true } })).toBe(normalWithUsage);
  });

  test.each(every)("gets the same whole answer from %s", async (runtime) => {
    expect(await on(runtime).whole(odd[runtime])).toEqual({
      id: expect.stringMatching(/^chatcmpl-\w{12,}$/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "m",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Hello there", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 },
    });
  });

  test.each(every)("has a word of %s before the next is said", async (runtime) => {
    const gate = Promise.withResolvers<void>();
    on(runtime).play(async (chat) => {
      chat.say("Hello");
      await gate.promise;
      chat.done();
    });
    const stream = await on(runtime).endpoint.stream({ model: "m", says: "Hi" });
    await until(() => stream.text === "Hello", { what: "the first word" });
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    gate.resolve();
    expect(await stream.over).toBe("closed");
  });

  test.each<[RuntimeName, string[]]>([
    ["Ollama", [`{… "message":{"role":"assistant","content":"The letters are alpha beta gamma"},"done":false}`]],
    ["LM Studio", [`data: {… "choices":[{"index":0,"delta":{"content":"The letters are alpha beta gamma"}}]}`]],
  ])("gets only what follows the beginning that %s says once more", async (runtime, said) => {
    const begun = [
      { role: "user", content: "Count." },
      { role: "assistant", content: "The letters are alpha beta" },
    ];
    const end = odd[runtime]
      .trimEnd()
      .split("\n")
      .slice(runtime === "Ollama" ? -1 : -3);
    const answer = await on(runtime).whole([...said, ...end].join("\n"), { messages: begun });
    expect(answer).toMatchObject({ choices: [{ message: { content: " gamma" } }] });
  });

  test("is refused a prompt that does not fit by every runtime that knows it, and has none cut", async () => {
    const told = { status: 400, error: { code: "context_length_exceeded", param: "messages" } };
    const says = (words: number) => ({ messages: [{ role: "user", content: "word ".repeat(words) }] });
    for (const [runtime, words] of [
      ["Ollama", 4_097],
      ["Ollama, native", 4_097],
      ["vLLM", 32_769],
      ["llama-server", 8_193],
      ["LM Studio", 8_193],
    ] as const) {
      expect(await on(runtime).refused(undefined, says(words)), runtime).toMatchObject(told);
    }
  });

  test("is told both numbers of a prompt that does not fit, its own estimated where its runtime told none", async () => {
    const message = "the prompt is longer than the context length currently available to the model";
    const refused = await on("Ollama").refused({ status: 400, body: JSON.stringify({ error: message }) });
    expect(refused.error).toMatchObject({ message: expect.stringMatching(/4096 tokens.*about \d+ \(estimated\)/) });
  });

  test("waits for a model that llama-server is still loading", async () => {
    let asked = 0;
    on("llama-server").play((chat) => {
      asked += 1;
      const error = { code: 503, message: "Loading model", type: "unavailable_error" };
      if (asked === 1)
        return chat.refuseWith(503, { contentType: "application/json", body: JSON.stringify({ error }) });
      chat.say("Hello");
      chat.done();
    });
    expect(await on("llama-server").endpoint.answer({ model: "m", says: "Hi" })).toBe("Hello");
    expect(asked).toBe(2);
  });
});

describe("a client of a runtime that queues, loads or reads the prompt in silence", () => {
  const hello = normal.replace(/^.*" there".*\n/m, "");

  test("has its status held back as long as it may still be another; then comments come, and the answer", async () => {
    expect((await on("slow Ollama").refused({ status: 503, body: `{"error":"server busy"}` })).status).toBe(503);
    const gate = Promise.withResolvers<void>();
    on("slow Ollama").play(async (chat) => {
      await gate.promise;
      chat.say("Hello");
      chat.done();
    });
    const stream = await on("slow Ollama").endpoint.chat({ model: "m", says: "Hi", stream: true });
    expect(stream.status).toBe(200);
    gate.resolve();
    const [, comments = "", rest] = /^((?:: [a-z0-9 ]+\n\n)+)(.*)$/s.exec(await stream.text()) ?? [];
    expect(comments).toMatch(/^: (loading|prefill)\n\n/);
    expect(toClient(rest ?? "")).toBe(hello);
  });

  test("a client of a runtime that queues, loads or reads the prompt in silence, is told its place in the queue, since Ollama tells nobody of its own", async () => {
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    on("slow Ollama").play(async (chat) => {
      asked += 1;
      await gate.promise;
      chat.say("Hello");
      chat.done();
    });
    const [first, second] = await Promise.all(
      [0, 1].map(() => on("slow Ollama").endpoint.chat({ model: "m", says: "Hi", stream: true })),
    );
    expect(asked).toBe(1);
    gate.resolve();
    const texts = [await first?.text(), await second?.text()];
    expect(texts.filter((text) => text?.startsWith(": queued at 1\n\n"))).toHaveLength(1);
    for (const text of texts) expect(toClient(text?.replaceAll(/^: .*\n\n/gm, "") ?? "")).toBe(hello);
  });
});
