import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { continued, likely, replayed, type Replayed, tools } from "./replayed.ts";
import { restOfBegun } from "./recorded-answers.ts";

/** Of llama-server 0.7.0 (build 11669), one model. */
const discovery = {
  "/health": `{"status":"ok"}`,
  "/props": `{"default_generation_settings":{"params":{"n_predict":-1},"n_ctx":8192},"total_slots":4,"model_alias":"qwen3-8b.gguf","model_path":"qwen3-8b.gguf","modalities":{"vision":false,"video":false,"audio":false},"chat_template":"{% if tools %}{{ tools }}{% endif %}<think></think>","chat_template_caps":{"supports_parallel_tool_calls":true,"supports_system_role":true,"supports_tool_calls":true,"supports_tools":true},"build_info":"b11669-Debian","is_sleeping":false}`,
  "/v1/models": `{"models":[{"name":"qwen3-8b.gguf","model":"qwen3-8b.gguf","modified_at":"","size":"","digest":"","type":"model","description":"","tags":[""],"capabilities":["completion"],"parameters":"","details":{"parent_model":"","format":"gguf","family":"","families":[""],"parameter_size":"","quantization_level":""}}],"object":"list","data":[{"id":"qwen3-8b.gguf","aliases":["qwen3-8b.gguf"],"tags":[],"object":"model","architecture":{"input_modalities":["text"],"output_modalities":["text"]},"created":1795247349,"owned_by":"llamacpp","meta":{"vocab_type":1,"n_vocab":293,"n_ctx":8192,"n_ctx_train":8192,"n_embd":320,"n_params":659520,"size":2638080,"ftype":"all F32"}}]}`,
};

let llama: Replayed;
beforeAll(async () => void (llama = await replayed("llama-server", discovery)));
afterAll(() => llama[Symbol.asyncDispose]());

const short = String.raw`
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1795247351,"id":"chatcmpl-UMjtgYEy5l9NuTgolVRY41kn37TRg1C5","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":"length","index":0,"delta":{}}],"created":1795247351,"id":"chatcmpl-UMjtgYEy5l9NuTgolVRY41kn37TRg1C5","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[],"created":1795247351,"id":"chatcmpl-UMjtgYEy5l9NuTgolVRY41kn37TRg1C5","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":12,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":11}},"timings":{"cache_n":11,"prompt_n":1,"prompt_ms":0.26,"prompt_per_token_ms":0.26,"prompt_per_second":3846.153846153846,"predicted_n":2,"predicted_ms":0.203,"predicted_per_token_ms":0.203,"predicted_per_second":4926.108374384236}}
data: [DONE]
`;

describe("llama-server as it was recorded", () => {
  test("quirks 12, 13 and 16: a first content of null, thoughts in one field, and timings beside the usage", async () => {
    const odd = String.raw`
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"I"}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":" should"}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"XwvtdKFbNIRkVAz2ZJVXVBNjpeYWf4Hd","type":"function","function":{"name":"get_weather","arguments":"{"}}]}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"city\": \""}}]}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"Rome"}}]}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":"tool_calls","index":0,"delta":{}}],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[],"created":1795247351,"id":"chatcmpl-sQazMxpBQGr7uhSg3i7bjLS8MUQYZ2Yg","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk","usage":{"completion_tokens":19,"prompt_tokens":625,"total_tokens":644,"prompt_tokens_details":{"cached_tokens":624}},"timings":{"cache_n":624,"prompt_n":1,"prompt_ms":0.765,"prompt_per_token_ms":0.765,"prompt_per_second":1307.18954248366,"predicted_n":19,"predicted_ms":6.099,"predicted_per_token_ms":0.3388333333333333,"predicted_per_second":2951.303492375799}}
data: [DONE]
`;
    expect(await llama.streamed(odd, { tools, stream_options: { include_usage: true } })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":"I","reasoning":"I"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"reasoning_content":" should","reasoning":" should"},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"XwvtdKFbNIRkVAz2ZJVXVBNjpeYWf4Hd","type":"function","function":{"name":"get_weather","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"city\": \""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"Rome"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}
data: {… "choices":[],"usage":{"prompt_tokens":625,"completion_tokens":19,"total_tokens":644,"prompt_tokens_details":{"cached_tokens":624}}}
data: [DONE]
`);
  });

  test("quirks 12 and 15: an answer that is over before it has said a word", async () => {
    expect(await llama.streamed(short, { max_tokens: 2 })).toBe(String.raw`
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}
data: [DONE]
`);
  });

  test("quirk 10: what follows a beginning, which is not said once more when it is told to go on", async () => {
    const odd = String.raw`
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1795247354,"id":"chatcmpl-VYnvIfZdtq4BzjGA6ab05TvxsbAoPT52","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" my"}}],"created":1795247354,"id":"chatcmpl-VYnvIfZdtq4BzjGA6ab05TvxsbAoPT52","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" friend"}}],"created":1795247354,"id":"chatcmpl-VYnvIfZdtq4BzjGA6ab05TvxsbAoPT52","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"!"}}],"created":1795247354,"id":"chatcmpl-VYnvIfZdtq4BzjGA6ab05TvxsbAoPT52","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1795247354,"id":"chatcmpl-VYnvIfZdtq4BzjGA6ab05TvxsbAoPT52","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk"}
data: {"choices":[],"created":1795247354,"id":"chatcmpl-VYnvIfZdtq4BzjGA6ab05TvxsbAoPT52","model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"chat.completion.chunk","usage":{"completion_tokens":4,"prompt_tokens":18,"total_tokens":22,"prompt_tokens_details":{"cached_tokens":17}},"timings":{"cache_n":17,"prompt_n":1,"prompt_ms":0.288,"prompt_per_token_ms":0.288,"prompt_per_second":3472.2222222222226,"predicted_n":4,"predicted_ms":0.545,"predicted_per_token_ms":0.18166666666666667,"predicted_per_second":5504.587155963302}}
data: [DONE]
`;
    expect(await llama.streamed(odd, continued)).toBe(restOfBegun);
    expect(llama.asked).toMatchObject({ continue_final_message: true, add_generation_prompt: false });
  });

  test("quirk 5: a function that is named, which it takes for any that is offered, is offered alone", async () => {
    const others = [...tools, { type: "function", function: { name: "get_time" } }];
    await llama.streamed(short, {
      tools: others,
      tool_choice: { type: "function", function: { name: "get_weather" } },
    });
    expect(llama.asked).toMatchObject({ tools, tool_choice: "required" });
  });
});

test("a text that llama-server continues, as it was recorded, comes with likelihoods as in chats, and the counts in the chunk that tells the finish", async () => {
  const odd = String.raw`
data: {"choices":[{"text":" beta","index":0,"logprobs":{"content":[{"id":267,"token":" beta","bytes":[32,98,101,116,97],"logprob":0.0,"top_logprobs":[{"id":267,"token":" beta","bytes":[32,98,101,116,97],"logprob":0.0},{"id":0,"token":"","bytes":[],"logprob":-71.4399642944336}]}]},"finish_reason":null}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","id":"chatcmpl-T8MYglIv335JP4TUYgLqjdVwfwinwIqQ"}
data: {"choices":[{"text":" gamma","index":0,"logprobs":{"content":[{"id":268,"token":" gamma","bytes":[32,103,97,109,109,97],"logprob":0.0,"top_logprobs":[{"id":268,"token":" gamma","bytes":[32,103,97,109,109,97],"logprob":0.0},{"id":0,"token":"","bytes":[],"logprob":-71.4399642944336}]}]},"finish_reason":null}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","id":"chatcmpl-T8MYglIv335JP4TUYgLqjdVwfwinwIqQ"}
data: {"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"length"}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","usage":{"completion_tokens":2,"prompt_tokens":2,"total_tokens":4,"prompt_tokens_details":{"cached_tokens":1}},"id":"chatcmpl-T8MYglIv335JP4TUYgLqjdVwfwinwIqQ","timings":{"cache_n":1,"prompt_n":1,"prompt_ms":0.484,"prompt_per_token_ms":0.484,"prompt_per_second":2066.115702479339,"predicted_n":2,"predicted_ms":0.263,"predicted_per_token_ms":0.263,"predicted_per_second":3802.2813688212927}}
data: [DONE]
`;
  expect(await llama.continued(odd, { logprobs: 1 })).toEqual([
    { kind: "text", text: " beta", logprobs: [likely(" beta")] },
    { kind: "text", text: " gamma", logprobs: [likely(" gamma")] },
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 2, completionTokens: 2, cachedTokens: 1 },
  ]);
});

test("a text that llama-server continues, as it was recorded, begins with how far the prompt was read, and is cut at a stop string within what was one token", async () => {
  const odd = String.raw`
data: {"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":null}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","id":"chatcmpl-gXydJ9NhaFHfq10YhJBvs0l0Z0UTYFQS","prompt_progress":{"total":1,"cache":0,"processed":0,"time_ms":0}}
data: {"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":null}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","id":"chatcmpl-gXydJ9NhaFHfq10YhJBvs0l0Z0UTYFQS","prompt_progress":{"total":1,"cache":0,"processed":1,"time_ms":0}}
data: {"choices":[{"text":"alpha","index":0,"logprobs":null,"finish_reason":null}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","id":"chatcmpl-gXydJ9NhaFHfq10YhJBvs0l0Z0UTYFQS"}
data: {"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":null}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","id":"chatcmpl-gXydJ9NhaFHfq10YhJBvs0l0Z0UTYFQS"}
data: {"choices":[{"text":" be","index":0,"logprobs":null,"finish_reason":null}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","id":"chatcmpl-gXydJ9NhaFHfq10YhJBvs0l0Z0UTYFQS","timings":{"cache_n":0,"prompt_n":1,"prompt_ms":0.538,"prompt_per_token_ms":0.538,"prompt_per_second":1858.736059479554,"predicted_n":3,"predicted_ms":0.393,"predicted_per_token_ms":0.1965,"predicted_per_second":5089.058524173028}}
data: {"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","usage":{"completion_tokens":3,"prompt_tokens":1,"total_tokens":4,"prompt_tokens_details":{"cached_tokens":0}},"id":"chatcmpl-gXydJ9NhaFHfq10YhJBvs0l0Z0UTYFQS","timings":{"cache_n":0,"prompt_n":1,"prompt_ms":0.538,"prompt_per_token_ms":0.538,"prompt_per_second":1858.736059479554,"predicted_n":3,"predicted_ms":0.393,"predicted_per_token_ms":0.1965,"predicted_per_second":5089.058524173028}}
data: [DONE]
`;
  expect(await llama.continued(odd, { stop: ["ta g"] })).toEqual([
    { kind: "text", text: "alpha" },
    { kind: "text", text: " be" },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 1, completionTokens: 3, cachedTokens: 0 },
  ]);
});

test("a text that llama-server continues, as it was recorded, that is empty was not looked at, unless the model begins its texts with a token of its own", async () => {
  const odd = String.raw`
data: {"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"length"}],"created":1795258413,"model":"qwen3-8b.gguf","system_fingerprint":"b11669-Debian","object":"text_completion","usage":{"completion_tokens":0,"prompt_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0}},"id":"chatcmpl-zZCd66zWEWsoFz3nYmdNOhCtlFl5ptmz","timings":{"cache_n":0,"prompt_n":0,"prompt_ms":0.0,"prompt_per_token_ms":0.0,"prompt_per_second":0.0,"predicted_n":0,"predicted_ms":0.0,"predicted_per_token_ms":0.0,"predicted_per_second":0.0}}
data: [DONE]
`;
  await expect(llama.continued(odd, { prompt: "" })).rejects.toMatchObject({
    code: "invalid_value",
    param: "prompt",
  });
});
