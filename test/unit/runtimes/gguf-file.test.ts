import { expect, test } from "vitest";
import { idOf } from "../../../services/agent/runtimes/llama/gguf-file.ts";
import { partsOf } from "../../../services/agent/runtimes/model-digest.ts";

test.each([
  ["/models/Qwen3-8B-Q4_K_M.gguf", undefined, "Qwen3-8B-Q4_K_M"],
  ["Big-00002-of-00003.gguf", "Big Model", "Big"],
  [`blobs/sha256-${"a".repeat(64)}`, "Named Inside", "Named Inside"],
  [`blobs/sha256-${"a".repeat(64)}`, undefined, `sha256-${"a".repeat(64)}`],
  ["odd.GGUF", "", "odd"],
])("a model is called by its file: %s", (path, ownName, id) => {
  expect(idOf(path, ownName)).toBe(id);
});

test("a model in parts is known from any of them", () => {
  const parts = ["/m/a-00001-of-00002.gguf", "/m/a-00002-of-00002.gguf"];
  expect(parts.map(partsOf)).toEqual([parts, parts]);
  expect(partsOf("/m/a.gguf")).toEqual(["/m/a.gguf"]);
});
