import { describe, expect, test } from "vitest";
import { refuses } from "./refuses.ts";
import { lmStudioStage, ollamaStage } from "./stage.ts";
import { everyRuntime, staged } from "./staged.ts";

const on = staged({
  ...everyRuntime,
  "Ollama's plain model": () => ollamaStage({ capabilities: ["completion"] }),
  "Ollama's gpt-oss": () => ollamaStage({ architecture: "gptoss" }),
  "LM Studio's plain model": () => lmStudioStage({ type: "llm", thinks: false }),
});
type Name = Parameters<typeof on>[0];

describe("quirk 7: how much to think is said in each runtime's words", () => {
  const noThinking = { chat_template_kwargs: { enable_thinking: false } };

  test.each<[Name, string, object]>([
    ["Ollama", "none", { think: false }],
    ["Ollama", "minimal", { think: "low" }],
    ["Ollama", "high", { think: "high" }],
    ["Ollama", "xhigh", { think: "max" }],
    ["Ollama's gpt-oss", "medium", { think: "medium" }],
    ["vLLM", "none", noThinking],
    ["vLLM", "high", { reasoning_effort: "high" }],
    ["llama-server", "none", { reasoning_effort: "none", ...noThinking }],
    ["llama-server", "high", { reasoning_effort: "high" }],
    ["LM Studio", "low", { reasoning_effort: "low" }],
    ["mlx-lm", "none", noThinking],
    ["mlx-lm", "low", { chat_template_kwargs: { reasoning_effort: "low" } }],
  ])("%s is asked for the effort %s as %j", async (name, effort, asked) => {
    expect(await on(name).asked({ reasoning_effort: effort })).toMatchObject(asked);
  });

  test.each<[Name, string]>([
    ["Ollama's plain model", "think"],
    ["LM Studio's plain model", "reasoning_effort"],
  ])("%s, which does not think, is sent nothing for none, and is not asked for more", async (name, field) => {
    expect(await on(name).asked({ reasoning_effort: "none" })).not.toHaveProperty(field);
    await refuses(on(name), { reasoning_effort: "low" }, "reasoning_effort");
  });

  test.each<[Name, string]>([
    ["LM Studio", "none"],
    ["LM Studio", "xhigh"],
    ["Ollama's gpt-oss", "none"],
  ])("%s cannot do %s, so that it is a 400 and no answer that thinks all the same", async (name, effort) => {
    await refuses(on(name), { reasoning_effort: effort }, "reasoning_effort");
  });

  test.each(["minimal", "xhigh", "max"])(
    "Ollama's gpt-oss knows low, medium and high, and is sent one of them for %s or not asked",
    async (effort) => {
      let think: unknown = "not asked";
      on("Ollama's gpt-oss").play((chat) => {
        think = chat.request.body["think"];
        chat.done();
      });
      await (await on("Ollama's gpt-oss").endpoint.chat({ model: "m", says: "Hi", reasoning_effort: effort })).text();
      expect(["not asked", "low", "medium", "high"]).toContain(think);
    },
  );
});
