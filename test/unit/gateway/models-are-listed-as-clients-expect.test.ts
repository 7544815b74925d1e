import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  createdSecondsMax,
  type DetailedModel,
  model as modelShape,
  type OfferedModel,
  showModel,
  taggedName,
} from "#shared/protocol/model.ts";
import { messageModelPage, modelsPageMax } from "../../../services/gateway/apis/models/list-models.ts";
import { type MachineAnswer, mergeCatalogues, readCatalogue } from "../../../services/gateway/jobs/live-models.ts";
import { modelOf, nothing } from "./machines-of-a-fleet.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { ollamaLoaded, ollamaShow, ollamaTags } from "../../../services/gateway/apis/ollama/ollama-models.ts";

const apple = { runtime_profile: "apple-mlx", apple_mlx: true } as const;
const someModel: fc.Arbitrary<DetailedModel> = fc
  .record({
    id: fc.constantFrom("llama3", "qwen3", "Zephyr", "hf.co/org/a:q4"),
    created: fc.nat(),
    owned_by: fc.constantFrom("ollama", "library"),
    capabilities: fc.constantFrom("completion", "vision", "tools").map((what) => ({ ...nothing, [what]: true })),
    context_window: fc.integer({ min: 1, max: 100_000 }),
    size_mb: fc.nat(),
    isApple: fc.boolean(),
    family: fc.constantFrom(undefined, "llama", "qwen3"),
  })
  .map(({ isApple, family, ...fields }) => ({
    ...modelOf(fields.id, { ...fields, ...(isApple ? apple : {}) }),
    ...(family && { details: { family } }),
  }));
const someCatalogues = fc.array(fc.uniqueArray(someModel, { selector: ({ id }) => id }), { maxLength: 5 });

test("the models of several machines are one list, sorted by id, each id once, and each a model of the contract", () => {
  fc.assert(
    fc.property(someCatalogues, (catalogues) => {
      const ids = mergeCatalogues(catalogues).map((each) => modelShape.parse(each).id);
      const expected = [...new Set(catalogues.flat().map(({ id }) => id))].sort();
      expect(ids).toEqual(expected);
    }),
  );
});

test("the models of several machines are the same list whichever machine answers first, so that every gateway answers alike", () => {
  fc.assert(
    fc.property(someCatalogues, fc.nat(), (catalogues, rotation) => {
      const at = rotation % Math.max(1, catalogues.length);
      const rotated = [...catalogues.slice(at), ...catalogues.slice(0, at)];
      expect(mergeCatalogues(rotated)).toEqual(mergeCatalogues(catalogues));
      expect(mergeCatalogues(catalogues.toReversed())).toEqual(mergeCatalogues(catalogues));
    }),
  );
});

test("the models of several machines say nothing to clients of what operators are told", () => {
  const one = { ...modelOf("a"), runtime: "ollama", loaded: true };
  const two = { ...modelOf("a"), runtime: "vllm" };
  expect(mergeCatalogues([[one], [two], [{ ...modelOf("b"), loaded: false }]])).toEqual([modelOf("a"), modelOf("b")]);
});

test("the models of several machines with the same id can what any can, in the largest window, since the oldest", () => {
  const one = modelOf("a", { capabilities: { ...nothing, tools: true }, context_window: 10, size_mb: 3, created: 9 });
  const two = modelOf("a", { capabilities: { ...nothing, vision: true }, context_window: 20, size_mb: 2, created: 5 });
  expect(mergeCatalogues([[one], [two]])).toEqual([
    modelOf("a", {
      capabilities: { ...nothing, tools: true, vision: true },
      context_window: 20,
      size_mb: 3,
      created: 5,
    }),
  ]);
});

test("the models of several machines have the details on which all their machines agree", () => {
  const details = { family: "llama", parameter_size: "3.2B", quantization_level: "Q4_K_M" };
  const one = { ...modelOf("a"), details };
  expect(mergeCatalogues([[one], [{ ...one }]])).toEqual([one]);
  const finer = { ...modelOf("a"), details: { ...details, quantization_level: "Q8_0" } };
  const { quantization_level: _, ...agreed } = details;
  expect(mergeCatalogues([[one], [finer]])).toEqual([{ ...modelOf("a"), details: agreed }]);
  expect(mergeCatalogues([[one], [modelOf("a")]])).toEqual([modelOf("a")]);
});

test("the models of several machines are Apple's only when they are so on every machine", () => {
  const [mlx, plain] = [modelOf("a", apple), modelOf("a")];
  expect(mergeCatalogues([[mlx], [mlx]])).toEqual([mlx]);
  expect(mergeCatalogues([[mlx], [plain], [mlx]])).toEqual([plain]);
});

const numbers = [-1, 0, 1e-9, 1, createdSecondsMax, createdSecondsMax + 1, Number.MAX_SAFE_INTEGER, 2 ** 53, 1e308];
const others = ["", "a", "\ud800", "x".repeat(100_000), null, true, [], {}, { completion: true }];
const fields = ["id", "created", "owned_by", "capabilities", "context_window", "size_mb", "runtime_profile"] as const;
const odd = fields.flatMap((field) => [...numbers, ...others].map((value) => [field, value] as const));

test.each(odd)(
  "a list of models with extreme values whose %s is %j is listed in each shape, or left out with the reason",
  (field, value) => {
    const text = JSON.stringify([modelOf("plain"), { ...modelOf("odd"), [field]: value }]);
    const { catalogue = [], leftOut = [] } = readCatalogue(text) ?? {};
    expect(catalogue.length + leftOut.length).toBe(2);
    expect(catalogue).toContainEqual(modelOf("plain"));
    for (const reason of leftOut) expect(reason).toMatch(new RegExp(`: ${field}(\\.\\w+)?: .`));
    const models = mergeCatalogues([catalogue]);
    for (const { created_at } of messageModelPage(models, {}).data) {
      expect(created_at).toMatch(/^\d{4}-\d\d-\d\dT/);
    }
    for (const each of catalogue) JSON.stringify(showModel(each, "attic"));
  },
);

test.each([
  ["too long", { family: "x".repeat(1_000), parameter_size: 7, quantization_level: "Q8_0" }, "x".repeat(60), "Q8_0"],
  ["no object", "llama", undefined, undefined],
])(
  "a list of models with extreme values whose details are %s stays listed, with texts of a bounded length",
  (_, details, family, quantization) => {
    const { catalogue = [] } = readCatalogue(JSON.stringify([{ ...modelOf("a"), details }])) ?? {};
    expect(catalogue).toMatchObject([{ id: "a" }]);
    expect(catalogue[0]?.details?.family).toBe(family);
    expect(catalogue[0]?.details?.quantization_level).toBe(quantization);
    expect(catalogue[0]?.details?.parameter_size).toBeUndefined();
  },
);

test("a list of models with extreme values is no list of models if it is not an array", () => {
  for (const text of ["", "{}", "null", '"a"']) expect(readCatalogue(text)).toBeUndefined();
});

const four = ["a", "b", "c", "d"].map((id) => modelOf(id));
const page = (query: object) => {
  const { data, has_more } = messageModelPage(four, query);
  return [data.map(({ id }) => id).join(""), has_more];
};

test.each([
  [{ limit: "3" }, "abc", true],
  [{ limit: "3", after_id: "c" }, "d", false],
  [{ after_id: "b" }, "cd", false],
  [{ limit: "1", before_id: "c" }, "b", true],
  [{ before_id: "c" }, "ab", false],
])("the query %j gives the four %s, and more of them: %s", (query, ids, more) => {
  expect(page(query)).toEqual([ids, more]);
});

test.each([{ limit: "0" }, { limit: "all" }, { limit: String(modelsPageMax + 1) }, { after_id: ["a", "b"] }])(
  "the query %j is refused by the names of its fields",
  (query) => {
    expect(faultThrownBy(() => messageModelPage(four, query)).message).toContain("(modelsPageMax)");
  },
);

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
