import { expect, test } from "vitest";
import { ollamaShow, OllamaWindows } from "../../../services/agent/runtimes/ollama/ollama-catalogue.ts";

function shown(trainedTokens: number, parameters?: string) {
  const info = { "general.architecture": "llama", "llama.context_length": trainedTokens };
  return ollamaShow.parse({ capabilities: ["completion"], model_info: info, parameters });
}

test("the window that an Ollama gives its models is remembered of a model that was loaded once, also when it is not any more", () => {
  const windows = new OllamaWindows();
  windows.saw("d", shown(131_072), 65_536);
  windows.saw("d", shown(131_072), undefined);
  expect(windows.tokensOf("d", shown(131_072))).toBe(65_536);
});

test("the window that an Ollama gives its models is learnt for the others from one that was cut to it", () => {
  const windows = new OllamaWindows();
  expect(windows.tokensOf("other", shown(131_072))).toBe(4_096);
  windows.saw("d", shown(131_072), 32_768);
  expect(windows.tokensOf("other", shown(262_144))).toBe(32_768);
  expect(windows.tokensOf("small", shown(8_192))).toBe(8_192);
  expect(windows.tokensOf("told", shown(131_072, "num_ctx 2048"))).toBe(2_048);
});

test("the window that an Ollama gives its models is not learnt from a model that asked for its own window, or has all that it can", () => {
  const windows = new OllamaWindows();
  windows.saw("asked", shown(131_072, "num_ctx 65536"), 65_536);
  windows.saw("whole", shown(16_384), 16_384);
  expect(windows.tokensOf("other", shown(131_072))).toBe(4_096);
});
