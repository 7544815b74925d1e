import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { continued, likely, replayed, type Replayed, tools } from "./replayed.ts";
import { restOfBegun } from "./recorded-answers.ts";

/** Of vLLM 0.32.0 on a CPU, with a parser for tools and one for reasoning. */
const discovery = {
  "/version": `{"version":"0.32.0"}`,
  "/v1/models": `{"object":"list","data":[{"id":"qwen3","object":"model","created":1795248280,"owned_by":"vllm","root":"Qwen/Qwen3-8B","parent":null,"max_model_len":8192,"permission":[]}]}`,
};

let vllm: Replayed;
beforeAll(async () => void (vllm = await replayed("vllm", discovery)));
afterAll(() => vllm[Symbol.asyncDispose]());

const rest = String.raw`
data: {"id":"chatcmpl-87c400a74cacd771","object":"chat.completion.chunk","created":1795248317,"model":"qwen3","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
data: {"id":"chatcmpl-87c400a74cacd771","object":"chat.completion.chunk","created":1795248317,"model":"qwen3","choices":[{"index":0,"delta":{"content":" my"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-87c400a74cacd771","object":"chat.completion.chunk","created":1795248317,"model":"qwen3","choices":[{"index":0,"delta":{"content":" friend"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-87c400a74cacd771","object":"chat.completion.chunk","created":1795248317,"model":"qwen3","choices":[{"index":0,"delta":{"content":"!"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-87c400a74cacd771","object":"chat.completion.chunk","created":1795248317,"model":"qwen3","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-87c400a74cacd771","object":"chat.completion.chunk","created":1795248317,"model":"qwen3","choices":[],"usage":{"prompt_tokens":18,"total_tokens":22,"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"vllm-0.32.0-7daef36d"}
data: [DONE]
`;

describe("vLLM as it was recorded", () => {
  test("quirk 14: a call whose start and first arguments are two entries of one delta, beside a content of null", async () => {
    const odd = String.raw`
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"reasoning":"\n"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"reasoning":"I"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"content":"\n\n"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"id":"chatcmpl-tool-9ce0f2a719615577","type":"function","index":0,"function":{"name":"get_weather"}},{"index":0,"function":{"arguments":"{"}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"\"city\": \""}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"Rome"}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-8c05b236b4b4aeaf","object":"chat.completion.chunk","created":1795248283,"model":"qwen3","choices":[],"usage":{"prompt_tokens":513,"total_tokens":532,"completion_tokens":19,"completion_tokens_details":{"reasoning_tokens":6}},"system_fingerprint":"vllm-0.32.0-7daef36d"}
data: [DONE]
`;
    expect(await vllm.streamed(odd, { tools, stream_options: { include_usage: true } })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"\n","reasoning":"\n"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"I","reasoning":"I"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"content":"\n\n"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-tool-9ce0f2a719615577","type":"function","function":{"name":"get_weather","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"city\": \""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"Rome"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}
data: {… "choices":[],"usage":{"prompt_tokens":513,"completion_tokens":19,"total_tokens":532,"completion_tokens_details":{"reasoning_tokens":6}}}
data: [DONE]
`);
  });

  test("quirk 15: a finish of stop after a call of the function that was named", async () => {
    const odd = String.raw`
data: {"id":"chatcmpl-88df5d9ed02c4f5e","object":"chat.completion.chunk","created":1795248284,"model":"qwen3","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
data: {"id":"chatcmpl-88df5d9ed02c4f5e","object":"chat.completion.chunk","created":1795248284,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"id":"chatcmpl-tool-9ca95c56160dccaa","type":"function","index":0,"function":{"name":"get_weather"}},{"index":0,"function":{"arguments":"{"}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-88df5d9ed02c4f5e","object":"chat.completion.chunk","created":1795248284,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"\"city\": \""}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-88df5d9ed02c4f5e","object":"chat.completion.chunk","created":1795248284,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"Rome"}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-88df5d9ed02c4f5e","object":"chat.completion.chunk","created":1795248284,"model":"qwen3","choices":[{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-88df5d9ed02c4f5e","object":"chat.completion.chunk","created":1795248284,"model":"qwen3","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-88df5d9ed02c4f5e","object":"chat.completion.chunk","created":1795248284,"model":"qwen3","choices":[],"usage":{"prompt_tokens":513,"total_tokens":531,"completion_tokens":18,"completion_tokens_details":{"reasoning_tokens":6}},"system_fingerprint":"vllm-0.32.0-7daef36d"}
data: [DONE]
`;
    const tool_choice = { type: "function", function: { name: "get_weather" } };
    expect(await vllm.streamed(odd, { tools, tool_choice })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"chatcmpl-tool-9ca95c56160dccaa","type":"function","function":{"name":"get_weather","arguments":""}}]},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"city\": \""}}]},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"Rome"}}]},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}]}
data: [DONE]
`);
  });

  test("quirk 15: a finish on the chunk of the last thought, with the stop that ended it beside it", async () => {
    const odd = String.raw`
data: {"id":"chatcmpl-b0cc584ebf79aea2","object":"chat.completion.chunk","created":1795248315,"model":"qwen3","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
data: {"id":"chatcmpl-b0cc584ebf79aea2","object":"chat.completion.chunk","created":1795248315,"model":"qwen3","choices":[{"index":0,"delta":{"reasoning":"\nI "},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-b0cc584ebf79aea2","object":"chat.completion.chunk","created":1795248315,"model":"qwen3","choices":[{"index":0,"delta":{"reasoning":"should"},"logprobs":null,"finish_reason":"stop","stop_reason":" answer","token_ids":null}]}
data: {"id":"chatcmpl-b0cc584ebf79aea2","object":"chat.completion.chunk","created":1795248315,"model":"qwen3","choices":[],"usage":{"prompt_tokens":12,"total_tokens":17,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2}},"system_fingerprint":"vllm-0.32.0-7daef36d"}
data: [DONE]
`;
    expect(await vllm.streamed(odd, { stop: [" answer"] })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"\nI ","reasoning":"\nI "},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"should","reasoning":"should"},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}
data: [DONE]
`);
    expect(vllm.asked).toMatchObject({ stop: [" answer"] });
  });

  test("quirks 12 and 16: two answers that come in turns have a first chunk each, and their finishes come at the end", async () => {
    const odd = String.raw`
data: {"id":"chatcmpl-a9293ec4cf83d63d","object":"chat.completion.chunk","created":1795248312,"model":"qwen3","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
data: {"id":"chatcmpl-a9293ec4cf83d63d","object":"chat.completion.chunk","created":1795248312,"model":"qwen3","choices":[{"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}
data: {"id":"chatcmpl-a9293ec4cf83d63d","object":"chat.completion.chunk","created":1795248312,"model":"qwen3","choices":[{"index":0,"delta":{"reasoning":"\n"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-a9293ec4cf83d63d","object":"chat.completion.chunk","created":1795248312,"model":"qwen3","choices":[{"index":1,"delta":{"reasoning":"\n"},"logprobs":null,"finish_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-a9293ec4cf83d63d","object":"chat.completion.chunk","created":1795248312,"model":"qwen3","choices":[{"index":0,"delta":{"reasoning":"I"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-a9293ec4cf83d63d","object":"chat.completion.chunk","created":1795248312,"model":"qwen3","choices":[{"index":1,"delta":{"reasoning":"I"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}
data: {"id":"chatcmpl-a9293ec4cf83d63d","object":"chat.completion.chunk","created":1795248312,"model":"qwen3","choices":[],"usage":{"prompt_tokens":12,"total_tokens":18,"completion_tokens":6,"completion_tokens_details":{"reasoning_tokens":4}},"system_fingerprint":"vllm-0.32.0-7daef36d"}
data: [DONE]
`;
    const asked = { n: 2, max_tokens: 3, stream_options: { include_usage: true } };
    expect(await vllm.streamed(odd, asked)).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"\n","reasoning":"\n"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":1,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":1,"delta":{"reasoning_content":"\n","reasoning":"\n"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"I","reasoning":"I"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":1,"delta":{"reasoning_content":"I","reasoning":"I"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}],"usage":null}
data: {… "choices":[{"index":1,"delta":{},"logprobs":null,"finish_reason":"length"}],"usage":null}
data: {… "choices":[],"usage":{"prompt_tokens":12,"completion_tokens":6,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":4}}}
data: [DONE]
`);
    expect(vllm.asked).toMatchObject({ n: 2, max_tokens: 3 });
  });

  test("quirk 10: what follows a beginning, which is not said once more when it is told to go on", async () => {
    expect(await vllm.streamed(rest, continued)).toBe(restOfBegun);
    expect(vllm.asked).toMatchObject({ continue_final_message: true, add_generation_prompt: false });
  });

  test("the tokens so far, which it tells with each piece, are no usage before the end", async () => {
    const odd = String.raw`
data: {"id":"chatcmpl-a056b87e213c84d7","object":"chat.completion.chunk","created":1795886354,"model":"gemma3-270m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":15,"total_tokens":15,"completion_tokens":0,"completion_tokens_details":null},"prompt_token_ids":null,"prompt_text":null}
data: {"id":"chatcmpl-a056b87e213c84d7","object":"chat.completion.chunk","created":1795886354,"model":"gemma3-270m","choices":[{"index":0,"delta":{"content":"Say"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":15,"total_tokens":16,"completion_tokens":1,"completion_tokens_details":null}}
data: {"id":"chatcmpl-a056b87e213c84d7","object":"chat.completion.chunk","created":1795886354,"model":"gemma3-270m","choices":[{"index":0,"delta":{"content":":"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":15,"total_tokens":17,"completion_tokens":2,"completion_tokens_details":null}}
data: {"id":"chatcmpl-a056b87e213c84d7","object":"chat.completion.chunk","created":1795886354,"model":"gemma3-270m","choices":[{"index":0,"delta":{"content":" "},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}],"usage":{"prompt_tokens":15,"total_tokens":18,"completion_tokens":3,"completion_tokens_details":null}}
data: {"id":"chatcmpl-a056b87e213c84d7","object":"chat.completion.chunk","created":1795886354,"model":"gemma3-270m","choices":[],"usage":{"prompt_tokens":15,"total_tokens":18,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0,"created_cache_tokens":0}},"system_fingerprint":"vllm-0.32.0-abd1e506"}
data: [DONE]
`;
    expect(await vllm.streamed(odd, { stream_options: { include_usage: true } })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"content":"Say"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"content":":"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"content":" "},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}],"usage":null}
data: {… "choices":[],"usage":{"prompt_tokens":15,"completion_tokens":3,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":0}}}
data: [DONE]
`);
    expect(vllm.asked).toMatchObject({ stream_options: { continuous_usage_stats: true } });
  });

  test("quirk 1: a limit above the window, which it refuses, is asked for as the window", async () => {
    await vllm.streamed(rest, { max_tokens: 100_000 });
    expect(vllm.asked).toMatchObject({ max_tokens: 8_192 });
  });
});

test("a text that vLLM continues, as it was recorded, comes with likelihoods in lists side by side, and its finish with the last of it", async () => {
  const odd = String.raw`
data: {"id":"cmpl-915ad814c7d1f80a","object":"text_completion","created":1795258487,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"text":" beta","logprobs":{"text_offset":[0],"token_logprobs":[0.0],"tokens":[" beta"],"top_logprobs":[{" beta":0.0,"!":-71.4399642944336}]},"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}
data: {"id":"cmpl-915ad814c7d1f80a","object":"text_completion","created":1795258487,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"text":" gamma","logprobs":{"text_offset":[5],"token_logprobs":[0.0],"tokens":[" gamma"],"top_logprobs":[{" gamma":0.0,"!":-71.4399642944336}]},"finish_reason":"length","stop_reason":null,"prompt_token_ids":null,"token_ids":null}],"system_fingerprint":"vllm-0.32.0-215e758a"}
data: [DONE]
`;
  expect((await vllm.continued(odd, { logprobs: 1 })).slice(0, 3)).toEqual([
    { kind: "text", text: " beta", logprobs: [likely(" beta", null)] },
    { kind: "text", text: " gamma", logprobs: [likely(" gamma", null)] },
    { kind: "finish", reason: "length" },
  ]);
});

test("a text that vLLM continues, as it was recorded, is cut at a stop string by vLLM itself, within what was one token, and counted at the end", async () => {
  const odd = String.raw`
data: {"id":"cmpl-be3ca1401f161824","object":"text_completion","created":1795258648,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"text":" b","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}
data: {"id":"cmpl-be3ca1401f161824","object":"text_completion","created":1795258648,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"text":"e","logprobs":null,"finish_reason":"stop","stop_reason":"ta g","prompt_token_ids":null,"token_ids":null}]}
data: {"id":"cmpl-be3ca1401f161824","object":"text_completion","created":1795258648,"model":"Qwen/Qwen3-8B","choices":[],"usage":{"prompt_tokens":1,"total_tokens":3,"completion_tokens":2},"system_fingerprint":"vllm-0.32.0-215e758a"}
data: [DONE]
`;
  expect(await vllm.continued(odd, { stop: ["ta g"] })).toEqual([
    { kind: "text", text: " b" },
    { kind: "text", text: "e" },
    { kind: "finish", reason: "stop", stop: "ta g" },
    { kind: "usage", promptTokens: 1, completionTokens: 2 },
  ]);
});

test("a text that vLLM continues, as it was recorded, with a suffix is refused where the model was not made for one", async () => {
  const body = String.raw`{"error":{"message":"suffix is only supported for models with FIM completion rendering","type":"BadRequestError","param":"suffix","code":400}}`;
  await expect(vllm.continued({ status: 400, body }, { suffix: "x" })).rejects.toMatchObject({
    code: "unsupported_parameter",
    param: "suffix",
  });
});

test("a text that vLLM continues, as it was recorded, with a bias on a token that there is not is refused late, in a stream that ends as a success", async () => {
  const odd = String.raw`
data: {"error": {"message": "token_id(s) [999999] in logit_bias contain out-of-vocab token ids. Vocabulary size: 268 (parameter=logit_bias, value=[999999])", "type": "BadRequestError", "param": "logit_bias", "code": 400}}
data: [DONE]
`;
  await expect(vllm.continued(odd, { logit_bias: { "999999": -100 } })).rejects.toMatchObject({
    code: "bad_request",
    param: "logit_bias",
  });
});
