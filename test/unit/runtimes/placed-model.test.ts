import { expect, test } from "vitest";
import { byPlacedId, idByPlace } from "../../../services/agent/runtimes/openai/openai-models.ts";

test.each([
  ["an-alias", "an-alias"],
  ["org/name", "org/name"],
  ["ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M"],
  ["/models/Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B-Q4_K_M"],
  ["models/Qwen3-8B.gguf", "Qwen3-8B"],
  ["C:\\models\\Qwen3-8B.gguf", "Qwen3-8B"],
  ["big-00001-of-00003.gguf", "big"],
  ["/srv/models/tiny-qwen3-tool", "tiny-qwen3-tool"],
  ["/srv/models/tiny-qwen3-tool/", "tiny-qwen3-tool"],
  ["./models/tiny", "tiny"],
  ["~/models/tiny", "tiny"],
  ["D:/models/tiny", "tiny"],
  ["/home/me/.cache/huggingface/hub/models--org--a-name/snapshots/0123abcd", "org/a-name"],
  ["/", "/"],
])("the id that clients use tells nothing of the place where the model lies: %s", (name, id) => {
  expect(idByPlace(name)).toBe(id);
});

test("the id that clients use is that of one model: of two by the same name in different places the first is meant", () => {
  const listed = ["/a/tiny", "/b/tiny", "other"].map((id) => ({ id }));
  expect([...byPlacedId(listed)]).toEqual([
    ["tiny", { id: "/a/tiny" }],
    ["other", { id: "other" }],
  ]);
});
