import { expect, test } from "vitest";
import { type OfferedModel, taggedName } from "#shared/protocol/model.ts";
import type { MachineAnswer } from "../../../services/gateway/jobs/live-models.ts";
import { ollamaLoaded, ollamaShow, ollamaTags } from "../../../services/gateway/apis/ollama/ollama-models.ts";
import { mergeCatalogues } from "../../../services/gateway/jobs/live-models.ts";
import { modelOf } from "./machines-of-a-fleet.ts";

const llama: OfferedModel = { ...modelOf("llama3"), created: 60, size_mb: 5, loaded: true, memory_mb: 7 };
const qwen: OfferedModel = { ...modelOf("qwen3:8b"), created: 120, size_mb: 3, loaded: false };
const away: OfferedModel = { ...modelOf("gpt-5"), created: 0, loaded: true };
const answers: MachineAnswer[] = [
  { machine: "attic", external: false, answer: [llama, qwen] },
  { machine: "cellar", external: false, answer: [{ ...qwen, loaded: true }] },
  { machine: "cloud", external: true, answer: [away] },
  { machine: "loft", external: false, answer: "nothing" },
];
const models = mergeCatalogues([[llama, qwen, away]]);

test.each([
  ["llama3", "llama3:latest"],
  ["qwen3:8b", "qwen3:8b"],
  ["hf.co/org/model", "hf.co/org/model:latest"],
  ["host:5000/model", "host:5000/model:latest"],
])("the model %s has the name %s", (id, name) => expect(taggedName(id)).toBe(name));

test("the newest model comes first, with its bytes and abilities, and nothing that only operators see", () => {
  const listed = ollamaTags(models) as { models: Readonly<Record<string, unknown>>[] };
  expect(listed.models.map(({ name }) => name).slice(0, 2)).toEqual(["qwen3:8b", "llama3:latest"]);
  expect(listed.models[1]).toEqual({
    name: "llama3:latest",
    model: "llama3:latest",
    modified_at: "1970-01-01T00:01:00.000Z",
    size: 5_000_000,
    digest: expect.stringMatching(/^[\da-f]{64}$/),
    details: expect.objectContaining({ family: "", context_length: llama.context_window }),
    capabilities: ["completion"],
  });
});

test("a model is in memory if a machine of the site reports so, with the memory that was measured", () => {
  const { models: loaded } = ollamaLoaded(models, { answers }) as { models: object[] };
  expect(loaded).toMatchObject([
    { name: "llama3:latest", size: 7_000_000, size_vram: 7_000_000, context_length: llama.context_window },
    { name: "qwen3:8b", size: 3_000_000 },
  ]);
  expect(ollamaLoaded(models.slice(0, 1), { answers: [] })).toEqual({ models: [] });
});

test("a model that is shown has its window where clients look for it", () => {
  const shown = ollamaShow(llama) as { model_info: Readonly<Record<string, unknown>> };
  const architecture = String(shown.model_info["general.architecture"]);
  expect(shown.model_info[`${architecture}.context_length`]).toBe(llama.context_window);
  const told = { family: "qwen3", parameter_size: "8.2B", quantization_level: "Q4_K_M" };
  expect(ollamaShow({ ...qwen, details: told })).toMatchObject({
    details: { ...told, families: ["qwen3"] },
    model_info: { "general.architecture": "qwen3", "qwen3.context_length": qwen.context_window },
  });
});
