import { describe, expect, test } from "vitest";
import { refuses } from "./refuses.ts";
import { lmStudioStage, vllmStage } from "./stage.ts";
import { everyRuntime, staged } from "./staged.ts";

const on = staged({
  ...everyRuntime,
  "LM Studio's MLX engine": () => lmStudioStage({ format: "mlx" }),
});
type Name = Parameters<typeof on>[0];

const [f, g] = ["f", "g"].map((name) => ({ type: "function", function: { name, parameters: { type: "object" } } }));
const tools = [f, g];
const named = { type: "function", function: { name: "g" } };

describe("quirk 5: tool_choice, n and parallel_tool_calls are never ignored", () => {
  test.each<[Name, unknown, object]>([
    ["Ollama", "none", {}],
    ["Ollama", "auto", { tools }],
    ["mlx-lm", "none", {}],
    ["mlx-lm", "auto", { tools }],
    ["vLLM", "none", { tools, tool_choice: "none" }],
    ["vLLM", "required", { tools, tool_choice: "required" }],
    ["vLLM", named, { tools, tool_choice: named }],
    ["llama-server", "required", { tools, tool_choice: "required" }],
    ["llama-server", named, { tools: [g], tool_choice: "required" }],
    ["LM Studio", "required", { tools, tool_choice: "required" }],
    ["LM Studio", named, { tools: [g], tool_choice: "required" }],
    ["LM Studio's MLX engine", "none", { tools, tool_choice: "none" }],
  ])("%s is asked for the choice %j as %j", async (name, choice, asked) => {
    const sent = (await on(name).asked({ tools, tool_choice: choice })) as Record<string, unknown>;
    expect({
      ...(sent["tools"] !== undefined && { tools: sent["tools"] }),
      ...(sent["tool_choice"] !== undefined && { tool_choice: sent["tool_choice"] }),
    }).toEqual(asked);
  });

  test.each<[Name, unknown]>([
    ["Ollama", "required"],
    ["Ollama", named],
    ["mlx-lm", "required"],
    ["mlx-lm", named],
    ["LM Studio's MLX engine", "required"],
    ["LM Studio's MLX engine", named],
  ])("%s leaves the choice to the model, so that %j is a 400 that names tool_choice", async (name, choice) => {
    await refuses(on(name), { tools, tool_choice: choice }, "tool_choice");
  });

  test.each<[Name, number]>([
    ["Ollama", 2],
    ["llama-server", 2],
    ["LM Studio", 2],
    ["mlx-lm", 2],
    ["vLLM", 1],
  ])("%s is asked for two answers in %i requests, and the client has both", async (name, times) => {
    const asked: { n: unknown; seed: unknown }[] = [];
    on(name).play((chat) => {
      const { n, seed, options } = chat.request.body as { n?: number; seed?: number; options?: { seed?: number } };
      asked.push({ n, seed: seed ?? options?.seed });
      for (let index = 0; index < (n ?? 1); index += 1) {
        if ("finish" in chat) chat.say(`answer ${asked.length + index}`, index);
        else chat.say(`answer ${asked.length}`);
        if ("finish" in chat && index > 0) chat.finish("stop", index);
      }
      chat.done();
    });
    const response = await on(name).endpoint.chat({ model: "m", says: "Hi", n: 2, seed: 5 });
    const { choices } = (await response.json()) as { choices: unknown };
    expect(choices).toMatchObject([
      { index: 0, message: { content: "answer 1" }, finish_reason: "stop" },
      { index: 1, message: { content: "answer 2" }, finish_reason: "stop" },
    ]);
    const alone = [5, 6].map((seed) => ({ n: undefined, seed }));
    expect(asked).toEqual(times === 1 ? [{ n: 2, seed: 5 }] : alone);
  });

  test.each<[Name, string]>([
    [
      "Ollama",
      `{… "message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"g","arguments":{}}}]},"done":false}
       {… "message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}`,
    ],
    ...(["vLLM", "llama-server", "LM Studio", "mlx-lm"] as const).map((name): [Name, string] => [
      name,
      `data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{\\"a\\":1}"}}]}}]}
       data: {… "choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"y","type":"function","function":{"name":"g","arguments":"{}"}}]}}]}
       data: {… "choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
       data: [DONE]`,
    ]),
  ])("%s may call two tools where the client wants one at a time, and it gets the first", async (name, odd) => {
    const both = { choices: [{ message: { tool_calls: [{ function: { name: "f" } }, { function: { name: "g" } }] } }] };
    expect(await on(name).whole(odd, { tools })).toMatchObject(both);
    expect(await on(name).whole(odd, { tools, parallel_tool_calls: false })).toMatchObject({
      choices: [
        {
          message: { tool_calls: [{ function: { name: "f", arguments: '{"a":1}' } }] },
          finish_reason: "tool_calls",
        },
      ],
    });
  });

  test("vLLM without a tool parser answers tools with a 400, and so does its model, by name", async () => {
    await using stage = await vllmStage({ toolParser: false });
    expect(await stage.refused(undefined, { tools })).toMatchObject({
      status: 400,
      error: { param: "tools", code: "model_does_not_support_tools" },
    });
  });

  test("llama-server refuses logprobs beside tools in a stream, and so is the client refused", async () => {
    await refuses(on("llama-server"), { tools, logprobs: true }, "logprobs");
  });
});
