import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { DetailedModel, Model } from "#shared/protocol/model.ts";
import { unknownUrl } from "../../http/answer-faults.ts";
import { callerOf } from "../../keys/authenticate.ts";
import { findListed, listModels } from "../../requests/resolve-model.ts";
import { namedShortly } from "../../requests/ignored-fields.ts";
import type { ApiParts } from "../api.ts";

/**
 * Serves the models that the calling key may use, as the machines report them at this moment, and one of them by its id,
 * which may hold `:` and `/`, written as they are or percent-encoded. Clients of the Messages API get its shape.
 */
export function serveModels(server: FastifyInstance, { models, ranking, modelRoutes }: ApiParts): void {
  server.get("/models", async (request, reply) => {
    const { key } = callerOf(request);
    const listing = await models.list(key);
    const { unanswered } = listing;
    if (unanswered.length > 0) reply.header("x-trunkline-unanswered", namedShortly(unanswered));
    const visible = listModels(listing, key, modelRoutes.table);
    return isForMessages(request)
      ? messageModelPage(visible, request.query)
      : { object: "list", data: visible.map(contracted) };
  });
  server.get<{ Params: { "*": string } }>("/models/*", async (request) => {
    const id = request.params["*"];
    const { key } = callerOf(request);
    if (id === "") throw unknownUrl(request);
    const model = await findListed(id, key, { models, ranking, routes: modelRoutes.table });
    return isForMessages(request) ? messageModel(model) : contracted(model);
  });
}

const isForMessages = ({ headers }: FastifyRequest): boolean => "anthropic-version" in headers;

/** Returns a model for clients. Nearly every server tells tokens, so that is not said of each model. */
function contracted(model: DetailedModel): Model {
  const { details: _, x_capabilities: told = [], ...fields } = model;
  const further = told.filter((ability) => ability !== "tokenize");
  return further.length === 0 ? fields : { ...fields, x_capabilities: further };
}

/** Models on one page of the list of the Messages API, unless the client asks for fewer. */
export const modelsPageMax = 1_000;

const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(modelsPageMax).optional(),
  after_id: z.string().optional(),
  before_id: z.string().optional(),
});

/** Returns a page of the models: those behind `after_id`, or those before `before_id`, `limit` of them at most. */
export function messageModelPage(models: readonly Model[], query: unknown) {
  const { success, data: asked } = pageQuery.safeParse(query);
  if (!success) {
    const message = `'limit' must be a whole number from 1 to ${modelsPageMax} (modelsPageMax); 'after_id' and 'before_id' may be given once.`;
    throw new Fault("invalid_value", { message, param: "limit" });
  }
  const { limit = modelsPageMax, after_id: after, before_id: before } = asked;
  const from = after === undefined ? 0 : models.findIndex(({ id }) => id === after) + 1;
  const found = before === undefined ? -1 : models.findIndex(({ id }) => id === before);
  const to = found === -1 ? models.length : found;
  const page =
    before === undefined
      ? models.slice(from, Math.min(to, from + limit))
      : models.slice(Math.max(from, to - limit), to);
  const hasMore = before === undefined ? from + page.length < models.length : to - page.length > 0;
  const data = page.map(messageModel);
  return { data, has_more: hasMore, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}

function messageModel({ id, created, context_window }: Model) {
  const created_at = new Date(created * 1_000).toISOString();
  return { type: "model", id, display_name: id, created_at, max_input_tokens: context_window };
}
