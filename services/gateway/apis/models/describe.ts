import { z } from "zod";
import { capabilities, model } from "#shared/protocol/model.ts";
import { count, text, textOrNull } from "../answer-parts.ts";
import { error } from "../openai-answers.ts";
import { type ApiDescription, get } from "../description.ts";
import { messageError } from "../messages/describe.ts";

const modelList = z.object({ object: z.literal("list"), data: z.array(model) });
const messageModel = z.object({
  type: z.literal("model"),
  id: text("The name for requests."),
  display_name: text("The same: models have no other name here."),
  created_at: text("The time at which the model came to be, such as `2026-01-31T12:00:00.000Z`."),
  max_input_tokens: count.describe("The most tokens that a request and its answer may have together."),
});
const messageModelPage = z.object({
  data: z.array(messageModel).describe("The models, by their ids."),
  has_more: z.boolean().describe("True if there are models behind these, or with `before_id` before them."),
  first_id: textOrNull("The first id of the page; null where the page is empty."),
  last_id: textOrNull("The last id of the page; null where the page is empty."),
});

export const describeModels: ApiDescription = {
  tag: "Models",
  errors: [error, messageError],
  refusedAs: "machines",
  schemas: [{ model, capabilities, modelList, messageModel, messageModelPage }],
  operations: [
    get("listModels", "/v1/models", [modelList, messageModelPage], { headers: ["x-trunkline-unanswered"] }),
    get("retrieveModel", "/v1/models/{id}", [model, messageModel], { refusals: ["model_not_found"] }),
  ],
};
