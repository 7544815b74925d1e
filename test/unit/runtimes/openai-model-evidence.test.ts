import { expect, test } from "vitest";
import { templateTakesTools, templateThinks } from "../../../services/agent/runtimes/openai/model-files.ts";
import {
  capabilitiesByProps,
  describedByArgs,
  llamaServerProps,
} from "../../../services/agent/runtimes/openai/llama-server.ts";
import {
  lmStudioModel,
  lmStudioModelBefore,
  lmStudioModels,
  lmStudioModelsBefore,
} from "../../../services/agent/runtimes/openai/lm-studio.ts";
import { loadIn } from "../../../services/agent/runtimes/openai/slots-by-load.ts";

test("model information of llama-server is nothing where it tells nothing, also in a form that is not known", () => {
  expect(capabilitiesByProps(llamaServerProps.parse({}))).toEqual({});
  expect(capabilitiesByProps(llamaServerProps.parse({ modalities: 7, chat_template_caps: "?" }))).toEqual({});
});

test("model information of llama-server is, for a model that a router would start, in its arguments", () => {
  expect(describedByArgs(["llama-server", "--ctx-size", "32768", "--parallel", "4"])).toEqual({
    contextTokens: 8_192,
    capabilities: {},
  });
  expect(describedByArgs(["-c", "32768", "-np", "4", "--kv-unified", "--mmproj", "x"])).toEqual({
    contextTokens: 32_768,
    capabilities: { vision: true },
  });
  expect(describedByArgs(["-c", "0", "--embeddings"])).toEqual({
    capabilities: { embedding: true, completion: false },
  });
  expect(describedByArgs(["--port", "0", "--alias", "qwen3", "--model", "/models/qwen3.gguf"])).toEqual({
    capabilities: {},
    modelPath: "/models/qwen3.gguf",
  });
});

test("the load in metrics of SGLang is that of all its ranks", () => {
  const metrics = ['sglang:num_running_reqs{tp_rank="0"} 3.0', 'sglang:num_queue_reqs{tp_rank="0"} 1.0'];
  expect(loadIn(metrics.join("\n"))).toEqual({ running: 3, waiting: 1 });
});

test("the load in metrics of vLLM is how many requests run and wait, over all of its engines", () => {
  const metrics = [
    "# TYPE vllm:num_requests_running gauge",
    'vllm:num_requests_running{engine="0",model_name="m"} 3.0',
    'vllm:num_requests_running{engine="1",model_name="m"} 1.0',
    'vllm:num_requests_waiting{engine="0",model_name="m"} 2.0',
    'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0',
  ];
  expect(loadIn(metrics.join("\n"))).toEqual({ running: 4, waiting: 2 });
  expect(loadIn("vllm:num_requests_running 0\n")).toEqual({ running: 0, waiting: 0 });
});

test.each([
  ["{{ '<think>\\n' }}", true],
  ["{%- if enable_thinking is false %}", true],
  ["<|start|>assistant<|channel|>analysis", true],
  ["[THINK]", true],
  ["{{ 'I think so' }}", false],
])("a chat template is one of a model that thinks: %s", (template, thinks) => {
  expect(templateThinks(template)).toBe(thinks);
});

test("a chat template takes tools where it speaks of them", () => {
  expect([templateTakesTools("{% if tools %}"), templateTakesTools("{{ messages }}")]).toEqual([true, false]);
});

const listed = {
  type: "llm",
  publisher: "qwen",
  key: "qwen/qwen3-8b",
  size_bytes: 5_000_000_000,
  max_context_length: 40_960,
  format: "gguf",
  loaded_instances: [],
  capabilities: { vision: false, trained_for_tool_use: true },
};
const described = (entry: object) => lmStudioModels.parse({ models: [entry] }).models.map(lmStudioModel)[0];
const describedBefore = (entry: object) =>
  lmStudioModelsBefore.parse({ data: [entry] }).data.map(lmStudioModelBefore)[0];

test("model information of LM Studio is the variant that is meant, MLX, and thinking", () => {
  const variant = { ...listed, selected_variant: "qwen/qwen3-8b@4bit", format: "mlx" };
  const model = described({ ...variant, capabilities: { reasoning: { allowed_options: ["off", "on"] } } });
  expect(model).toMatchObject({
    name: "qwen/qwen3-8b",
    id: "qwen/qwen3-8b:4bit",
    onAppleMlx: true,
    capabilities: { thinking: true, tools: false },
  });
});

test("model information of LM Studio is that a model embeds, and does nothing else", () => {
  const embedding = { completion: false, embedding: true, vision: false, tools: false, thinking: false };
  expect(described({ type: "embedding", key: "nomic" })?.capabilities).toEqual(embedding);
  expect(describedBefore({ type: "embeddings", id: "nomic" })?.capabilities).toEqual(embedding);
});

test("model information of LM Studio was less before, and is no more than was told", () => {
  const before = { id: "qwen", type: "vlm", publisher: "qwen", compatibility_type: "mlx", max_context_length: 40_960 };
  expect(describedBefore({ ...before, state: "loaded", loaded_context_length: 4_096 })).toEqual({
    id: "qwen",
    name: "qwen",
    instances: [{ id: "qwen", slots: undefined }],
    ownedBy: "qwen",
    capabilities: { completion: true, embedding: false, vision: true },
    details: {},
    contextTokens: 4_096,
    onAppleMlx: true,
    loaded: true,
  });
  expect(describedBefore({ ...before, state: "not-loaded", capabilities: ["tool_use"] })).toMatchObject({
    contextTokens: 40_960,
    capabilities: { tools: true },
    loaded: false,
  });
});
