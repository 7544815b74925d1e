import { expect, test } from "vitest";
import { completeModel } from "../../../services/agent/models/model-set.ts";
import {
  describeModel,
  type OllamaHost,
  ollamaShow,
  ollamaTag,
  OllamaWindows,
} from "../../../services/agent/runtimes/ollama/ollama-catalogue.ts";

const linux: OllamaHost = { platform: "linux", arch: "x64" };
const mac = { platform: "darwin", arch: "arm64" };

function described(facts: {
  tag?: Record<string, unknown>;
  show?: Record<string, unknown>;
  loadedTokens?: number;
  host?: OllamaHost;
}) {
  const tag = { name: "llama3.2:latest", digest: "d", size: 2_019_393_189, modified_at: "2026-08-01T10:00:00Z" };
  const modelInfo = { "general.architecture": "llama", "llama.context_length": 131_072 };
  const show = { capabilities: ["completion"], details: { format: "gguf" }, model_info: modelInfo };
  const host = facts.host ?? linux;
  const parsed = ollamaShow.parse({ ...show, ...facts.show });
  const windows = new OllamaWindows();
  windows.saw("d", parsed, facts.loadedTokens);
  const model = describeModel({
    tag: ollamaTag.parse({ ...tag, ...facts.tag }),
    show: parsed,
    contextTokens: windows.tokensOf("d", parsed),
    isLoaded: facts.loadedTokens !== undefined,
    host,
  });
  if (model === undefined) return undefined;
  const { id } = model;
  return completeModel({ id, described: model, settings: undefined, runtime: "ollama", firstSeenSeconds: () => 1 });
}

test("a model of Ollama's is described as the contract has it", () => {
  expect(described({ show: { capabilities: ["completion", "tools", "vision", "thinking", "insert"] } })).toEqual({
    id: "llama3.2",
    object: "model",
    created: Date.UTC(2026, 7, 1, 10) / 1_000,
    owned_by: "library",
    capabilities: { completion: true, vision: true, embedding: false, tools: true, thinking: true },
    context_window: 4_096,
    size_mb: 2_019,
    runtime_profile: "auto",
    digest: "ollama:d",
    runtime: "ollama",
    loaded: false,
  });
});

test.each([
  ["llama3.2:latest", "llama3.2", "library"],
  ["qwen3.5:9b", "qwen3.5:9b", "library"],
  ["ann/story:latest", "ann/story", "ann"],
  ["hf.co/bartowski/Llama-GGUF:Q4_K_M", "hf.co/bartowski/Llama-GGUF:Q4_K_M", "bartowski"],
])("a model of Ollama's %s is called %s and owned by %s", (name, id, owner) => {
  expect(described({ tag: { name } })).toMatchObject({ id, owned_by: owner });
});

test.each([
  ["2026-08-01T10:00:00.123456789+02:00", Date.UTC(2026, 7, 1, 8) / 1_000],
  ["0001-01-01T00:00:00Z", 0],
  ["yesterday", 0],
])("a model of Ollama's modified at %s was created at %d", (modifiedAt, created) => {
  expect(described({ tag: { modified_at: modifiedAt } })).toMatchObject({ created });
});

test.each([
  ["the window it is loaded with", { loadedTokens: 16_384, show: { parameters: "num_ctx 8192" } }, 16_384],
  ["else what its Modelfile says", { show: { parameters: 'stop   "x"\nnum_ctx                        8192' } }, 8_192],
  ["but never more than it was trained for", { show: { parameters: "num_ctx 999999" } }, 131_072],
  ["and, knowing nothing, the least that Ollama gives", { show: { model_info: {} } }, 4_096],
  ["at least 2048 with images", { show: { capabilities: ["vision"], parameters: "num_ctx 512" } }, 2_048],
  ["on MLX all that it was trained for", { show: { details: { format: "safetensors" } } }, 131_072],
])("a model of Ollama's has a context window that the machine really runs: %s", (_, facts, tokens) => {
  expect(described(facts)?.context_window).toBe(tokens);
});

test("a model of Ollama's has the details of its weights that Ollama reports, and none where it reports none", () => {
  const details = { family: "llama", parameter_size: "3.2B", quantization_level: "Q4_K_M" };
  expect(described({ show: { details: { ...details, format: "gguf" } } })?.details).toEqual(details);
  expect(described({ show: { details: { format: "gguf", family: "" } } })).not.toHaveProperty("details");
});

test("a model of Ollama's has the sampling of its Modelfile, and none where that says none", () => {
  const parameters = 'num_ctx 8192\ntemperature                    0.6\nstop   "top_p 7"\ntop_k 20';
  expect(described({ show: { parameters } })?.sampling).toEqual({ temperature: 0.6 });
  expect(described({ show: { parameters: "temperature 0\ntop_p 1" } })?.sampling).toEqual({ temperature: 0, top_p: 1 });
  expect(described({ show: { parameters: "num_ctx 8192" } })).not.toHaveProperty("sampling");
});

test("a model of Ollama's may have an architecture whose name holds dots, or none that is named", () => {
  const dotted = { "general.architecture": "a.b", "a.b.context_length": 1_024, "x.context_length": 9 };
  expect(described({ show: { model_info: dotted } })?.context_window).toBe(1_024);
  expect(described({ show: { model_info: { "only.context_length": 2_048 } } })?.context_window).toBe(2_048);
});

test("a model of Ollama's runs on Apple's MLX only in its format and on such a machine", () => {
  const mlx = { details: { format: "safetensors" } };
  expect(described({ show: mlx, host: mac })).toMatchObject({ runtime_profile: "apple-mlx", apple_mlx: true });
  expect(described({ show: mlx })).not.toHaveProperty("apple_mlx");
  expect(described({ host: mac })).toMatchObject({ runtime_profile: "auto" });
  expect(described({ host: mac })).not.toHaveProperty("apple_mlx");
});

test.each([
  ["runs in the cloud", { show: { remote_host: "https://ollama.com:443" } }],
  ["can do nothing that the contract knows", { show: { capabilities: ["image"] } }],
  ["has a name too long for an id", { tag: { name: "x".repeat(257) } }],
])("a model of Ollama's is left out when it %s", (_, facts) => {
  expect(described(facts)).toBeUndefined();
});

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
