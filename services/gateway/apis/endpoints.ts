import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { DetailedModel, Model } from "#shared/protocol/model.ts";
import type { Outer } from "../requests/read-request.ts";
import type { FastifyInstance } from "fastify";
import {
  answerRequest,
  placeableRequest,
  type Placeable,
  type PlacingDependencies,
} from "../requests/answer-request.ts";
import { formOuters } from "./media/media-request.ts";
import { type InferenceDependencies, namedShortly } from "../requests/run-answer.ts";
import type { JobPlacements } from "../routing/job-placements.ts";
import type { PromptCounter } from "../jobs/count-prompts.ts";
import { isForMessages } from "../http/request-state.ts";
import { callerOf } from "../keys/authenticate.ts";
import type { LiveModels } from "../jobs/live-models.ts";
import { unknownUrl } from "../http/answer-faults.ts";
import type { MachineRanking } from "../routing/rank-machines.ts";
import type { RouteRecords } from "../fleet/route-records.ts";
import { findListed, listModels } from "../requests/resolve-model.ts";

/** Serves the routes that ask a model for something: each request is one job on one machine. */
export function inferenceRoutes(server: FastifyInstance, paths: Paths, dependencies: InferenceDependencies): void {
  for (const [path, outer] of paths) {
    server.post(path, { config: { takesForm: formOuters.has(outer) } }, answerRequest(outer, dependencies));
  }
}

export type Paths = readonly (readonly [path: string, outer: Outer])[];

export const paths: Paths = [
  ["/chat/completions", "chat"],
  ["/responses", "response"],
  ["/messages", "message"],
  ["/completions", "completion"],
  ["/embeddings", "embeddings"],
  ["/rerank", "rerank"],
  ["/score", "score"],
  ["/audio/transcriptions", "transcription"],
  ["/audio/translations", "translation"],
  ["/audio/speech", "speech"],
  ["/images/generations", "image"],
  ["/images/edits", "image-edit"],
  ["/moderations", "moderation"],
];

/** The paths outside of `/v1`, where the clients of vLLM, Cohere and others look for them. */
export const barePaths: Paths = [
  ["/rerank", "rerank"],
  ["/v2/rerank", "rerank"],
  ["/tokenize", "tokenize"],
  ["/detokenize", "detokenize"],
];

/** The same of Ollama's API. */
export const ollamaPaths: Paths = [
  ["/chat", "ollama-chat"],
  ["/generate", "ollama-generate"],
  ["/embed", "ollama-embed"],
  ["/embeddings", "ollama-embeddings"],
];

/** The parts by which a model is looked up. */
export interface ModelParts {
  readonly models: LiveModels;
  readonly ranking: MachineRanking;
  readonly modelRoutes: Pick<RouteRecords, "table">;
}

/**
 * Serves the models that the calling key may use, as the machines report them at this moment. The route is the
 * contract's health check.
 */
export function getModels(server: FastifyInstance, parts: Omit<ModelParts, "ranking">): void {
  server.get("/models", async (request, reply) => {
    const { key } = callerOf(request);
    const listing = await parts.models.list(key);
    const { unanswered } = listing;
    if (unanswered.length > 0) reply.header("x-trunkline-unanswered", namedShortly(unanswered));
    const visible = listModels(listing, key, parts.modelRoutes.table);
    return isForMessages(request)
      ? messageModelPage(visible, request.query)
      : { object: "list", data: visible.map(contracted) };
  });
}

/** Serves one model by its id, which may hold `:` and `/`, written as they are or percent-encoded. */
export function getModel(server: FastifyInstance, parts: ModelParts): void {
  server.get<{ Params: { "*": string } }>("/models/*", async (request) => {
    const id = request.params["*"];
    const { key } = callerOf(request);
    if (id === "") throw unknownUrl(request);
    const model = await findListed(id, key, { ...parts, routes: parts.modelRoutes.table });
    return isForMessages(request) ? messageModel(model) : contracted(model);
  });
}

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

export interface CountDependencies extends PlacingDependencies {
  readonly counter: Pick<PromptCounter, "count">;
  readonly placements: Pick<JobPlacements, "memory">;
}

/** Response header of a number of tokens that no machine counted. */
const estimateHeader = "x-trunkline-estimate";

/** The paths where the tokens of a request are counted. */
export const countPaths = [
  ["/messages/count_tokens", "count"],
  ["/responses/input_tokens", "response-count"],
] as const;

/**
 * Serves the tokens of a request of the Messages or the Responses API, without running it. A machine that would run it
 * counts them. Where none does, they are estimated from above, and a header of the answer says so.
 */
export function countTokens(server: FastifyInstance, dependencies: CountDependencies): void {
  for (const [path, outer] of countPaths) {
    server.post<{ Body: Buffer | undefined }>(path, async (request, reply) => {
      const { asked, account, job } = await placeableRequest(outer, { request, reply }, dependencies);
      const { fault } = await account.admitCount(job.signal);
      if (fault !== undefined) throw fault;
      // Images are not fetched for a count, and no machine gets a body with their URLs.
      const counted = asked.remoteImages === undefined ? await dependencies.counter.count(job) : undefined;
      account.endedIn("ok");
      if (counted === undefined) reply.header(estimateHeader, "true");
      const tokens = counted ?? estimated({ asked, job }, dependencies);
      const input_tokens = Math.min(tokens, asked.ceiling.promptTokens);
      return outer === "count" ? { input_tokens } : { object: "response.input_tokens", input_tokens };
    });
  }
}

/** Returns the tokens of the longest earlier turn that a machine answered, with an upper estimate of the rest. */
function estimated({ asked, job }: Pick<Placeable, "asked" | "job">, { placements }: CountDependencies): number {
  const { tokens, behind } = asked.upper ?? { tokens: asked.promptTokens, behind: [] };
  const { prompt } = job.needs;
  const counted = prompt && placements.memory.countedTurn(prompt, job.modelId);
  return counted === undefined ? tokens : counted.promptTokens + (behind[counted.at] ?? 0);
}
