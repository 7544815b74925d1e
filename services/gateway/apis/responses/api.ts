import { limits } from "#shared/protocol/limits.ts";
import { inClientWords } from "../../chats/render-completions.ts";
import { countOfChat } from "../../chats/count-chat.ts";
import type { ChatForm } from "../../chats/read-chat.ts";
import { readJsonObject } from "../../http/read-json.ts";
import type { Endpoint, InferenceDependencies, ModelExchange } from "../../requests/endpoint.ts";
import { resolveModel } from "../../requests/resolve-model.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { Api } from "../api.ts";
import { describeResponses } from "./describe.ts";
import type { KeptResponses } from "./kept-responses.ts";
import { renderResponse } from "./render-response.ts";
import type { ResponseForm } from "./response-request.ts";
import { storedResponses } from "./stored-endpoints.ts";
import { namedTurns, type StoredTurns } from "./stored-turns.ts";

declare module "../../requests/endpoint.ts" {
  interface InferenceDependencies {
    readonly responses: KeptResponses;
  }
}

/** Returns the stored turns that a request names; undefined if nothing is stored for its key. */
async function turnsIn(
  body: Buffer,
  exchange: ModelExchange,
  dependencies: InferenceDependencies,
): Promise<StoredTurns | undefined> {
  const { responses } = dependencies;
  const { key } = exchange.request;
  if (!responses.mayStore(key)) return undefined;
  const named = namedTurns(body);
  if (named.latest.size + named.referred.size > 0) await assertModel(body, exchange, dependencies);
  // The stored turns take room as if they arrived with the body.
  return responses.turnsNamed(key.id, named, (bytes) => exchange.incoming.state.arriving?.grow(bytes));
}

/** Refuses a model that is not there before stored turns are read for it. A large body is not parsed twice for that. */
async function assertModel(
  body: Buffer,
  { request, leaving }: ModelExchange,
  { runner, modelRoutes }: InferenceDependencies,
): Promise<void> {
  const model = body.byteLength > limits.partBytes ? undefined : readJsonObject(body)["model"];
  if (typeof model !== "string") return;
  request.asksFor({ model, streamed: false });
  const { targets, ...routed } = resolveModel(model, request.key, modelRoutes.table);
  request.asksFor({ model, streamed: false, ...routed });
  const needs = { capability: "completion", tools: false, imageParam: undefined } as const;
  await runner.assertTaker({ targets, kind: "chat", needs }, request, leaving.signal);
}

const responses: Endpoint = {
  kind: "response",
  path: "/responses",
  idPrefix: "resp_",
  isResumable: true,
  lookUp: turnsIn,
  rendering: ({ form, stream: streamed }: ReadRequest<ResponseForm & ChatForm>) =>
    inClientWords(form, renderResponse(form.terms, { streamed })),
};

/** OpenAI's Responses API, with the responses and conversations that are stored. */
export const api: Api = {
  prefix: "/v1",
  descriptions: [describeResponses],
  others: storedResponses,
  endpoints: [
    responses,
    {
      ...responses,
      kind: "response-count",
      path: "/responses/input_tokens",
      isResumable: false,
      countOf: (asked: ReadRequest<ResponseForm & ChatForm>) =>
        countOfChat(asked, (input_tokens) => ({ object: "response.input_tokens", input_tokens })),
    },
  ],
};
