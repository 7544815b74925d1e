import { expect, test } from "vitest";
import { completeModel, modelSettingsFile, settingsOf } from "../../../services/agent/models/model-set.ts";
import type { DescribedModel } from "../../../services/agent/runtimes/runtime.ts";

const bare: DescribedModel = { id: "m", ownedBy: "someone", capabilities: {} };

function completed(described: Partial<DescribedModel>, settings?: Record<string, unknown>) {
  return completeModel({
    id: "m",
    described: { ...bare, ...described },
    settings: settings && settingsOf(modelSettingsFile.parse({ m: settings }), "m"),
    runtime: "vllm",
    firstSeenSeconds: () => 77,
  });
}

test("a model that its runtime says little of is offered for chat, in a small window and without any skill that nobody claims", () => {
  expect(completed({})).toEqual({
    id: "m",
    object: "model",
    created: 77,
    owned_by: "someone",
    capabilities: { completion: true, vision: false, embedding: false, tools: false, thinking: false },
    context_window: 4_096,
    size_mb: 0,
    runtime_profile: "auto",
    runtime: "vllm",
  });
});

test.each([Number.MAX_SAFE_INTEGER, -1, 0.5])(
  "a model that its runtime says was made at %d counts from when it was seen first",
  (createdSeconds) => {
    expect(completed({ createdSeconds })?.created).toBe(77);
  },
);

test("a model that its runtime says little of does not chat when all that is known is that it embeds", () => {
  expect(completed({ capabilities: { embedding: true } })).toMatchObject({
    capabilities: { completion: false, embedding: true },
  });
});

test("a model that its runtime says little of is the same as another one by its runtime, or by the operator, who wins", () => {
  expect(completed({ digest: "ollama:a" })?.digest).toBe("ollama:a");
  expect(completed({ digest: "ollama:a" }, { digest: "mine" })?.digest).toBe("mine");
  expect(completed({ digest: "x".repeat(500) })?.digest).toHaveLength(128);
});

test("a model that its runtime says little of has what the operator says of it, which wins over what the runtime says", () => {
  const described = { capabilities: { tools: false, vision: false }, contextTokens: 131_072, sizeBytes: 1_499_999 };
  const settings = { capabilities: { tools: true }, context_window: 8_192, owned_by: "me" };
  expect(completed(described, settings)).toMatchObject({
    capabilities: { tools: true, vision: false },
    context_window: 8_192,
    owned_by: "me",
    size_mb: 1,
  });
});

test("a model that its runtime says little of carries Apple's badge only where it runs on it", () => {
  expect(completed({ onAppleMlx: true })).toMatchObject({ runtime_profile: "apple-mlx", apple_mlx: true });
  expect(completed({ onAppleMlx: false })).not.toHaveProperty("apple_mlx");
});

test("a model that its runtime says little of is left out when it can do nothing that the contract knows, or cannot be named in it", () => {
  expect(completed({ capabilities: { completion: false } })).toBeUndefined();
  const described = { ...bare, ownedBy: "x".repeat(101) };
  const facts = { id: "m", described, settings: undefined, runtime: "vllm", firstSeenSeconds: () => 0 };
  expect(completeModel(facts)).toBeUndefined();
  expect(completeModel({ ...facts, described: bare, id: "x".repeat(257) })).toBeUndefined();
});

const file = modelSettingsFile.parse({
  "qwen*": { size_mb: 1 },
  "qwen3:8b": { size_mb: 2 },
  "*.gguf": { size_mb: 3 },
  "a+b": { size_mb: 4 },
});

test.each([
  ["qwen3:8b", 2],
  ["qwen3:4b", 1],
  ["models/x.gguf", 3],
  ["xxgguf", undefined],
  ["a+b", 4],
  ["aab", undefined],
  ["toString", undefined],
])("the operator's settings of %s are found by its id, or else by the first pattern that fits", (id, sizeMb) => {
  expect(settingsOf(file, id)?.size_mb).toBe(sizeMb);
});

test("the operator's settings with a field that nobody knows are refused", () => {
  expect(modelSettingsFile.safeParse({ m: { contextwindow: 1 } }).success).toBe(false);
  expect(modelSettingsFile.safeParse({ m: { capabilities: { tool: true } } }).success).toBe(false);
});
