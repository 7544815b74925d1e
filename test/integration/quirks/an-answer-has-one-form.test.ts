import { describe, expect, test } from "vitest";
import { normal, normalWithUsage, odd } from "./recorded-answers.ts";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged(everyRuntime);
const every = Object.keys(everyRuntime) as RuntimeName[];

describe("quirk 11: one id, one created and the client's own name of the model, on every chunk", () => {
  test.each(every)("whatever %s writes there", async (runtime) => {
    expect(await on(runtime).streamed(odd[runtime])).toBe(normal);
  });

  test("ids of Ollama's own OpenAI form collide after a thousand; two answers here never have the same", async () => {
    const ids = new Set<unknown>();
    for (let count = 0; count < 3; count += 1) ids.add(((await on("Ollama").whole(odd.Ollama)) as { id: string }).id);
    expect(ids.size).toBe(3);
  });

  test.each(every)("and a whole answer of %s is the same, folded", async (runtime) => {
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
});

const roles: Readonly<Record<string, readonly [RuntimeName, string]>> = {
  "null content in the first chunk, llama-server": ["llama-server", `{"role":"assistant","content":null}`],
  "an empty first chunk, vLLM": ["vLLM", `{"role":"assistant","content":""}`],
  "a first chunk with the role alone": ["vLLM", `{"role":"assistant"}`],
  "a first chunk with nothing": ["LM Studio", `{}`],
};

describe("quirk 12: one first chunk with the role and empty content, and neither role nor null later", () => {
  test.each(Object.entries(roles))("%s", async (_, [runtime, delta]) => {
    const stream = await on(runtime).streamed(`
      data: {… "choices":[{"index":0,"delta":${delta},"finish_reason":null}]}
      data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}
      data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}
      data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":" there"},"finish_reason":null}]}
      data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":"stop"}]}
      data: [DONE]
    `);
    expect(stream).toBe(normal);
  });

  test("an answer without a word has the first chunk all the same", async () => {
    const stream = await on("vLLM").streamed(`
      data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
      data: {… "choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}
      data: [DONE]
    `);
    expect(stream).toBe(`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`);
  });
});

describe("quirk 16: usage only when it is asked for, as the last chunk, without choices, complete, and without extras", () => {
  test.each(every)("%s sends usage only where it is asked for", async (runtime) => {
    expect(await on(runtime).streamed(odd[runtime], { stream_options: { include_usage: true } })).toBe(normalWithUsage);
    expect(await on(runtime).streamed(odd[runtime], { stream_options: { include_usage: false } })).toBe(normal);
  });

  test("the count of cached tokens is told as OpenAI does, llama-server", async () => {
    const cached = odd["llama-server"].replace(
      '"prompt_tokens":20}',
      '"prompt_tokens":20,"prompt_tokens_details":{"cached_tokens":4}}',
    );
    expect(await on("llama-server").whole(cached)).toMatchObject({
      usage: { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23, prompt_tokens_details: { cached_tokens: 4 } },
    });
  });

  test("usage that comes with a chunk that has choices is told in its place, LM Studio", async () => {
    const stream = await on("LM Studio").streamed(
      `
      data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}],"usage":{"prompt_tokens":20,"completion_tokens":1,"total_tokens":21}}
      data: {… "choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":3,"total_tokens":23}}
      data: [DONE]`,
      { stream_options: { include_usage: true } },
    );
    expect(stream).toBe(normalWithUsage);
  });
});
