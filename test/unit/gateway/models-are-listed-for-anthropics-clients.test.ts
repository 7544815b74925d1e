import { expect, test } from "vitest";
import type { Model } from "#shared/protocol/model.ts";
import { messageModelPage, modelsPageMax } from "../../../services/gateway/apis/models/list-models.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

const models = ["a", "b", "c", "d"].map((id): Model => ({
  id,
  object: "model",
  created: 1_767_225_600,
  owned_by: "trunkline",
  capabilities: { completion: true, vision: false, embedding: false, tools: true, thinking: false },
  context_window: 4_096,
  size_mb: 1,
  runtime_profile: "auto",
}));
const page = (query: object) => {
  const { data, has_more } = messageModelPage(models, query);
  return [data.map(({ id }) => id).join(""), has_more];
};

test.each([
  [{ limit: "3" }, "abc", true],
  [{ limit: "3", after_id: "c" }, "d", false],
  [{ after_id: "b" }, "cd", false],
  [{ limit: "1", before_id: "c" }, "b", true],
  [{ before_id: "c" }, "ab", false],
])("the query %j gives the models %s, and more of them: %s", (query, ids, more) => {
  expect(page(query)).toEqual([ids, more]);
});

test.each([{ limit: "0" }, { limit: "all" }, { limit: String(modelsPageMax + 1) }, { after_id: ["a", "b"] }])(
  "the query %j is refused by the names of its fields",
  (query) => {
    expect(faultThrownBy(() => messageModelPage(models, query)).message).toContain("(modelsPageMax)");
  },
);
