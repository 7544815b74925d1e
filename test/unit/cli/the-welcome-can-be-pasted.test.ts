import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Model } from "#shared/model/model.ts";
import { welcome } from "../../../services/cli/run-up.ts";

function model(id: string, completion: boolean): Model {
  return {
    id,
    object: "model",
    created: 1_767_225_600,
    owned_by: "library",
    capabilities: { completion, vision: false, embedding: !completion, tools: false, thinking: false },
    context_window: 4_096,
    size_mb: 1,
    runtime_profile: "auto",
  };
}
const about = { baseUrl: "http://127.0.0.1:8080/v1", key: "trunkline_x", machine: "attic", runtime: "ollama" };

test("the line to paste names a model that chats, whatever comes first in the list", () => {
  const text = welcome({ ...about, models: [model("nomic-embed-text", false), model("llama3.2", true)] });
  expect(text).toContain('{"model":"llama3.2","stream":true');
  expect(text).toContain("Models    nomic-embed-text, llama3.2");
});

test("without a model that chats there is nothing to paste, but what to do about it", () => {
  const text = welcome({ ...about, models: [] });
  expect(text).not.toContain("curl");
  expect(text).toContain("ollama pull");
});

test("a model's name is neither a command to the shell nor to the terminal", () => {
  const hostile = "it's `id` $(id)\u001b[2J\u202e";
  const text = welcome({ ...about, runtime: "ollama\u001b]0;x", models: [model(hostile, true)] });
  // oxlint-disable-next-line no-control-regex
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  const body = /-d ('.*')$/m.exec(text)?.[1] ?? "";
  const printed = execFileSync("sh", ["-c", `printf %s ${body}`], { encoding: "utf8" });
  expect(JSON.parse(printed)).toMatchObject({ model: expect.stringContaining("it's `id` $(id)") });
});
