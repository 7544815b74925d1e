import { describe, expect, test } from "vitest";
import { normal, odd } from "./recorded-answers.ts";
import { toClient } from "./short-form.ts";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged(everyRuntime);

const finishes: readonly (readonly [RuntimeName, string, string])[] = [
  ["vLLM", "stop", "stop"],
  ["vLLM", "length", "length"],
  ["vLLM", "repetition", "stop"],
  ["llama-server", "length", "length"],
  ["LM Studio", "eosFound", "stop"],
  ["mlx-lm", "length", "length"],
  ["mlx-lm", "", "stop"],
];

describe("quirk 15: the finish reason on a chunk of its own, and one of those that clients know", () => {
  test.each(finishes)(
    "%s says %j with its last text, and the client is told %s after it",
    async (runtime, told, reason) => {
      const stream = await on(runtime).streamed(`
      data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}
      data: {… "choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"${told}"}]}
      data: [DONE]
    `);
      expect(stream).toBe(normal.replace('"stop"', `"${reason}"`));
    },
  );

  test.each([
    ["stop", "stop"],
    ["length", "length"],
    ["load", "stop"],
    ["", "stop"],
  ])("Ollama says %j on its last line, and the client is told %s", async (told, reason) => {
    const stream = await on("Ollama").streamed(odd.Ollama.replace('"done_reason":"stop"', `"done_reason":"${told}"`));
    expect(stream).toBe(normal.replace('"stop"', `"${reason}"`));
  });

  test.each<RuntimeName>(["vLLM", "llama-server", "LM Studio", "mlx-lm"])(
    "%s says [DONE] and no finish reason, and the client is told that the answer stopped",
    async (runtime) => {
      const stream = await on(runtime).streamed(`
        data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}
        data: {… "choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}]}
        data: [DONE]
      `);
      expect(stream).toBe(normal);
    },
  );

  test.each<RuntimeName>(["vLLM", "llama-server", "LM Studio", "mlx-lm"])(
    "%s calls a tool and says [DONE] and no finish reason, and the client is told tool_calls",
    async (runtime) => {
      on(runtime).play((chat) => {
        chat.say("Hello");
        const called = { name: "f", arguments: "{}" };
        const call = { index: 0, id: "c", type: "function", function: called };
        chat.raw(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`);
        chat.raw("data: [DONE]\n\n");
        chat.end();
      });
      const tools = [{ type: "function", function: { name: "f" } }];
      const response = await on(runtime).endpoint.chat({ model: "m", says: "Hi", stream: true, tools });
      const events = (await response.text()).trimEnd().split("\n\n");
      expect(events.at(-1)).toBe("data: [DONE]");
      expect(events.at(-2)).toContain('"finish_reason":"tool_calls"');
    },
  );
});

const failed = (message: string): string => `
data: {… "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}
data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]}
data: {"error":{"message":"${message}","type":"server_error","param":null,"code":"upstream_error"}}
`;

describe("quirk 17: [DONE] once and only after success; after a failure an error, and nothing more", () => {
  const hello = `data: {… "choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}`;

  test.each<[RuntimeName, string, string]>([
    [
      "vLLM",
      "an error and [DONE]",
      `data: {"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","param":null,"code":500}}\ndata: [DONE]`,
    ],
    [
      "llama-server",
      "an error and no [DONE]",
      `data: {"error":{"code":500,"message":"Compute error.","type":"server_error"}}`,
    ],
    [
      "LM Studio",
      "an error under a name of its own",
      `event: error\ndata: {"error":{"message":"The model has crashed"}}`,
    ],
    ["mlx-lm", "an error as a bare string", `data: {"error":"[metal::malloc] out of memory"}`],
  ])("%s sends %s %j", async (runtime, _, error) => {
    const bytes = error.startsWith("event:") ? error : error.replaceAll("\n", "\n\n");
    on(runtime).play((chat) => {
      chat.say("Hello");
      chat.raw(`${bytes}\n\n`);
      chat.end();
    });
    const response = await on(runtime).endpoint.chat({ model: "m", says: "Hi", stream: true });
    expect(toClient(await response.text())).toBe(failed("The runtime failed during its answer."));
  });

  test("Ollama sends an error line in place of its last", async () => {
    const stream = await on("Ollama").streamed(`
      {… "message":{"role":"assistant","content":"Hello"},"done":false}
      {"error":"an error was encountered while running the model: CUDA error"}
    `);
    expect(stream).toBe(failed("The runtime failed during its answer."));
  });

  test("Ollama, after too many equal tokens, just ends", async () => {
    const stream = await on("Ollama").streamed(`{… "message":{"role":"assistant","content":"Hello"},"done":false}`);
    expect(stream).toBe(failed("The runtime ended its answer before it was complete."));
  });

  test("mlx-lm, in whose server an exception was raised, just ends, and its end looks like any other", async () => {
    expect(await on("mlx-lm").streamed(hello)).toBe(failed("The runtime ended its answer before it was complete."));
  });

  test.each<RuntimeName>(["vLLM", "llama-server", "LM Studio", "mlx-lm"])(
    "%s may say [DONE] twice, or go on after it, and the client has it once",
    async (runtime) => {
      expect(await on(runtime).streamed(`${odd[runtime]}data: [DONE]\n${hello}`)).toBe(normal);
    },
  );
});
