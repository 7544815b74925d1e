import { z } from "zod";
import { capabilities, model } from "#shared/protocol/model.ts";
import type { Api } from "../api.ts";
import { count, text, textOrNull, typed } from "../answer-parts.ts";
import { error } from "../openai-answers.ts";
import { type ApiDescription, get } from "../description.ts";
import { messageError } from "../messages/describe.ts";
import { serveModels } from "./list-models.ts";

const modelList = z.object({ object: z.literal("list"), data: z.array(model) });
const names = { id: text, display_name: text, created_at: text };
const messageModel = typed("model", { ...names, max_input_tokens: count });
const pageIds = { has_more: z.boolean(), first_id: textOrNull, last_id: textOrNull };
const messageModelPage = z.object({ data: z.array(messageModel), ...pageIds });

const describeModels: ApiDescription = {
  tag: "Models",
  errors: [error, messageError],
  refusedAs: "machines",
  schemas: [{ model, capabilities, modelList, messageModel, messageModelPage }],
  operations: [
    get("listModels", "/v1/models", [modelList, messageModelPage], { headers: ["x-trunkline-unanswered"] }),
    get("retrieveModel", "/v1/models/{id}", [model, messageModel], { refusals: ["model_not_found"] }),
  ],
};

/** The list of models, in the shape that the headers of a request ask for. */
export const api: Api = { prefix: "/v1", descriptions: [describeModels], endpoints: [], others: serveModels };
