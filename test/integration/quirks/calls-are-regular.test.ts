import { describe, expect, test } from "vitest";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged(everyRuntime);
const every = Object.keys(everyRuntime) as RuntimeName[];

const tools = ["get_weather", "get_time"].map((name) => ({ type: "function", function: { name } }));

/** One call of get_weather. Where the runtime gives it an id, that is `call_1`. */
const normalCall = (id: string, pieces: readonly string[]): string => `
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"${id}","type":"function","function":{"name":"get_weather","arguments":""}}]},"logprobs":null,"finish_reason":null}]}
${pieces.map((piece) => `data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":${JSON.stringify(piece)}}}]},"logprobs":null,"finish_reason":null}]}`).join("\n")}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}]}
data: [DONE]
`;

interface OddCall {
  readonly runtime: RuntimeName;
  readonly odd: string;
  /** The pieces of arguments that the client gets. */
  readonly pieces: readonly string[];
  /** Whether it comes without an id, so that it gets one of ours. */
  readonly nameless?: true;
}

const oddCalls: Readonly<Record<string, OddCall>> = {
  "whole, with arguments as an object, Ollama": {
    runtime: "Ollama",
    odd: `
    {… "message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"get_weather","arguments":{"city":"Rome"}}}]},"done":false}
    {… "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
    pieces: ['{"city":"Rome"}'],
  },
  "on the last line, without an id, Ollama with a template of the model's own": {
    runtime: "Ollama",
    odd: `
    {… "message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Rome"}}}]},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
    pieces: ['{"city":"Rome"}'],
    nameless: true,
  },
  "without arguments, Ollama": {
    runtime: "Ollama",
    odd: `
    {… "message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"get_weather"}}]},"done":false}
    {… "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
    pieces: ["{}"],
  },
  "in pieces, with a finish of stop for a function that was named, vLLM": {
    runtime: "vLLM",
    odd: `
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_1","type":"function","index":0,"function":{"name":"get_weather","arguments":""}}]},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":"}}]},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"Rome\\"}"}}]},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","stop_reason":null}]}
    data: [DONE]`,
    pieces: ['{"city":', '"Rome"}'],
  },
  "in pieces that begin with the name, llama-server": {
    runtime: "llama-server",
    odd: `
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]}
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{"}}]}}]}
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"city\\":"}}]}}]}
    data: {… "choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"Rome\\"}"}}]}}]}
    data: {… "choices":[{"finish_reason":"tool_calls","index":0,"delta":{}}]}
    data: [DONE]`,
    pieces: ["{", '"city":', '"Rome"}'],
  },
  "without a type, and with the name said again, LM Studio": {
    runtime: "LM Studio",
    odd: `
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","function":{"name":"get_weather"}}]},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"function":{"name":"get_weather","arguments":"{\\"city\\":\\"Rome\\"}"}}]},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    data: [DONE]`,
    pieces: ['{"city":"Rome"}'],
  },
  "whole, without an index, and with text beside it that is empty, mlx-lm": {
    runtime: "mlx-lm",
    odd: `
    data: {… "choices":[{"index":0,"finish_reason":null,"delta":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":"{\\"city\\":\\"Rome\\"}"},"type":"function","id":"call_1"}]}}]}
    data: {… "choices":[{"index":0,"finish_reason":"tool_calls","delta":{"role":"assistant","content":""}}]}
    data: [DONE]`,
    pieces: ['{"city":"Rome"}'],
  },
};

const twoCalls: Readonly<Record<RuntimeName, string>> = {
  Ollama: `
    {… "message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"get_weather","arguments":{}}}]},"done":false}
    {… "message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"get_time","arguments":{}}}]},"done":false}
    {… "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
  vLLM: `
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"get_weather","arguments":"{}"}},{"index":1,"id":"x","type":"function","function":{"name":"get_time","arguments":"{}"}}]},"finish_reason":null}]}
    data: {… "choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    data: [DONE]`,
  "llama-server": `
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"get_weather","arguments":"{}"}}]}}]}
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"","type":"function","function":{"name":"get_time","arguments":"{}"}}]}}]}
    data: {… "choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    data: [DONE]`,
  "LM Studio": `
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]}}]}
    data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"2","type":"function","function":{"name":"get_time","arguments":"{}"}}]}}]}
    data: {… "choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    data: [DONE]`,
  "mlx-lm": `
    data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"get_weather","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"get_time","arguments":"{}"}}]}}]}
    data: {… "choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
    data: [DONE]`,
};

describe("quirk 14: calls have index, id, type, name and arguments as text, and come one field after the other", () => {
  test.each(Object.entries(oddCalls))("%s", async (_, { runtime, odd, pieces, nameless }) => {
    const stream = await on(runtime).streamed(odd, { tools });
    const [id = ""] = nameless ? (/call_\w{12,}/.exec(stream) ?? ["no id of ours"]) : ["call_1"];
    expect(stream).toBe(normalCall(id, pieces));
    expect(await on(runtime).whole(odd, { tools })).toMatchObject({
      choices: [
        {
          message: {
            content: null,
            tool_calls: [
              {
                id: expect.any(String),
                type: "function",
                function: { name: "get_weather", arguments: pieces.join("") },
              },
            ],
          },
          finish_reason: "tool_calls",
        },
      ],
    });
  });

  test.each(every)("two calls of %s have two indexes and two ids, whatever it says", async (runtime) => {
    const stream = await on(runtime).streamed(twoCalls[runtime], { tools });
    const starts = stream.matchAll(
      /"tool_calls":\[\{"index":(\d),"id":"([^"]+)","type":"function","function":\{"name":"(\w+)"/g,
    );
    const [first, second] = [...starts].map(([, index, id, name]) => ({ index, id, name }));
    expect(first).toMatchObject({ index: "0", name: "get_weather" });
    expect(second).toMatchObject({ index: "1", name: "get_time" });
    expect(first?.id).not.toBe(second?.id);
  });

  test.each<[RuntimeName, string]>([
    [
      "Ollama",
      `
      {… "message":{"role":"assistant","content":"I look","tool_calls":[{"id":"call_1","function":{"name":"get_weather","arguments":{}}}]},"done":false}
      {… "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
    ],
    [
      "llama-server",
      `
      data: {… "choices":[{"index":0,"delta":{"content":"I look","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]}}]}
      data: {… "choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
      data: [DONE]`,
    ],
  ])("text and a call in one chunk of %s are two chunks", async (runtime, odd) => {
    expect(await on(runtime).streamed(odd, { tools })).toBe(
      normalCall("call_1", ["{}"]).replace(
        `"finish_reason":null}]}\n`,
        `"finish_reason":null}]}\ndata: {… "choices":[{"index":0,"delta":{"content":"I look"},"logprobs":null,"finish_reason":null}]}\n`,
      ),
    );
  });

  test.each<[RuntimeName, string]>([
    [
      "Ollama",
      `
      {… "message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"get_weather","arguments":{"city":"R"}}}]},"done":false}
      {… "message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":20,"eval_count":3}`,
    ],
    [
      "vLLM",
      `
      data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\\"ci"}}]}}]}
      data: {… "choices":[{"index":0,"delta":{},"finish_reason":"length"}]}
      data: [DONE]`,
    ],
  ])("a call of %s that was cut off at the limit is told as length, which wins", async (runtime, odd) => {
    expect(await on(runtime).whole(odd, { tools })).toMatchObject({ choices: [{ finish_reason: "length" }] });
  });
});
