import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { measurement, ModelFacts } from "../../../services/agent/models/model-facts.ts";
import { FirstSightings, ModelNotes } from "../../../services/agent/models/model-notes.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";
import { until } from "../../harness/until.ts";

let folder: string;
beforeEach(() => void (folder = folderOfTest()));

function sightings(file: string, nowMs: number) {
  const warnings: string[] = [];
  const log = { warn: (_fields: unknown, message?: string) => void warnings.push(String(message)) };
  return { of: new FirstSightings({ file, clock: { wall: () => nowMs }, log }), warnings };
}

test("since when a model is known stays the same over restarts", async () => {
  const file = join(folder, "state", "models-seen.json");
  expect(sightings(file, 5_000).of.secondsOf("vllm m")).toBe(5);
  await until(() => existsSync(file), { what: "the file" });
  const later = sightings(file, 9_000).of;
  expect([later.secondsOf("vllm m"), later.secondsOf("vllm other")]).toEqual([5, 9]);
});

test("since when a model is known begins anew when the file is damaged", () => {
  const file = join(folder, "models-seen.json");
  writeFileSync(file, '{"vllm m": "yesterday"');
  expect(sightings(file, 7_000).of.secondsOf("vllm m")).toBe(7);
});

test("since when a model is known is good for as long as the agent runs where nothing can be written, and that is told", async () => {
  const file = join(folder, "a-file");
  writeFileSync(file, "");
  const { of, warnings } = sightings(join(file, "below", "models-seen.json"), 5_000);
  expect([of.secondsOf("vllm m"), of.secondsOf("vllm m")]).toEqual([5, 5]);
  await until(() => warnings.length > 0, { what: "the warning" });
  expect(warnings).toHaveLength(1);
});

const log = { warn: () => undefined };
const factsBy = (file: string): ModelFacts =>
  new ModelFacts({ clock: { now: () => 0 }, measurements: new ModelNotes({ file, note: measurement, log }) });

test("the memory and the load time of a model stay as they were measured over restarts, but not for another file under the same name", async () => {
  const file = join(folder, "models-measured.json");
  const model = { id: "llama3:8b", size_mb: 5_000 };
  const before = factsBy(file);
  before.learnt(model, 6_100);
  before.loaded(model, 12_345.6, 6_100);
  before.learnt(model, 6_100);
  await until(() => existsSync(file) && readFileSync(file, "utf8").includes("12345"), { what: "the measurements" });
  expect(factsBy(file).learnt(model, undefined)).toEqual({ memory_mb: 6_100, load_ms: 12_346 });
  expect(factsBy(file).learnt({ ...model, size_mb: 9_000 }, undefined)).toEqual({});
});
