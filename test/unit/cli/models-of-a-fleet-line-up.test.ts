import { expect, test } from "vitest";
import type { ShownModel } from "#shared/protocol/model.ts";
import { modelsTable } from "../../../services/cli/commands/models.ts";
import { byteSize } from "../../../services/cli/terminal/quantity-text.ts";

const nothing = { completion: false, vision: false, embedding: false, tools: false, thinking: false };

function shown(id: string, fields: Partial<ShownModel> = {}): ShownModel {
  return {
    id,
    machine: "attic",
    runtime: "ollama",
    capabilities: { ...nothing, completion: true },
    context_window: 4_096,
    size_mb: 2_019,
    created: 1_767_225_600,
    runtime_profile: "auto",
    apple_mlx: false,
    loaded: null,
    ...fields,
  };
}

const lines = (...cells: string[]): string => cells.map((line) => `${line}\n`).join("");

test("every model is a line of its own, with what it can in short words and numbers one below the other", () => {
  const able = { completion: true, vision: true, embedding: false, tools: true, thinking: true };
  const models = [
    shown("llama3.2", { loaded: false }),
    shown("qwen3:235b", { capabilities: able, context_window: 262_144, size_mb: 142_000, loaded: true }),
    shown("模型", { machine: "mac", runtime: null, size_mb: 0, apple_mlx: true }),
    shown("nomic", { capabilities: { ...nothing, embedding: true }, context_window: 512, size_mb: 274 }),
    shown("odd", { capabilities: nothing, context_window: 1, size_mb: 1 }),
  ];
  expect(modelsTable(models)).toBe(
    lines(
      "id          machine  runtime  capabilities                 window    size  MLX  loaded",
      "llama3.2    attic    ollama   chat                          4,096  2.0 GB  no   no",
      "qwen3:235b  attic    ollama   chat, vision, tools, think  262,144  142 GB  no   yes",
      "模型        mac      -        chat                          4,096       -  yes  -",
      "nomic       attic    ollama   embed                           512  274 MB  no   -",
      "odd         attic    ollama   -                                 1  1.0 MB  no   -",
    ),
  );
});

test("a model shows the memory that it takes once that was measured, and how far its load is", () => {
  const models = [
    shown("llama3.2", { loaded: true, memory_mb: 3_400 }),
    shown("qwen3", { loaded: false, loading: { percent: 42, seconds_left: 12 } }),
  ];
  expect(modelsTable(models)).toBe(
    lines(
      "id        machine  runtime  capabilities  window    size  memory  MLX  loaded",
      "llama3.2  attic    ollama   chat           4,096  2.0 GB  3.4 GB  no   yes",
      "qwen3     attic    ollama   chat           4,096  2.0 GB       -  no   42 %, 12 s left",
    ),
  );
});

test("a long id is whole where no terminal limits it, and wraps on one", () => {
  const long = `hf.co/somebody/${"a-very-long-name-".repeat(6)}gguf:q4`;
  expect(modelsTable([shown(long)])).toContain(`${long}  attic`);
  expect(modelsTable([shown(long)], 40)).toMatch(/^id {12}hf\.co\/.*\n {14}/);
});

test("bytes are said in the unit in which they are short", () => {
  const sizes = [0, 999, 1_000, 9_949, 9_950, 815_319_791, 999_499_999, 999_600_000, 4_683_073_184, 2e14];
  expect(sizes.map(byteSize)).toEqual([
    "0 B",
    "999 B",
    "1.0 kB",
    "9.9 kB",
    "10 kB",
    "815 MB",
    "999 MB",
    "1.0 GB",
    "4.7 GB",
    "200 TB",
  ]);
});

test("a model of a known digest shows with which answers of other machines it goes on", () => {
  const able = { ...nothing, completion: true, tools: true };
  const models = [
    shown("one", { digest: "a", continues: ["plain"] }),
    shown("two", { digest: "b", continues: ["plain"], capabilities: able }),
    shown("three", { digest: "c", continues: [] }),
    shown("four", { digest: "d", continues: null }),
    shown("five", { digest: null }),
    shown("six", { digest: "e", capabilities: { ...nothing, embedding: true } }),
  ];
  const cells = modelsTable(models)
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/).at(-1));
  expect(cells).toEqual(["goes on", "yes", "plain", "no", "not yet", "no digest", "-"]);
});
