import type { FastifyRequest } from "fastify";
import { inClientWords } from "../../chats/render-completions.ts";
import { countOfChat } from "../../chats/count-chat.ts";
import type { ChatForm } from "../../chats/read-chat.ts";
import { stateOf } from "../../http/request-state.ts";
import { callerOf } from "../../keys/authenticate.ts";
import { assertModel } from "../../requests/read-body.ts";
import type { Endpoint, InferenceDependencies } from "../../requests/endpoint.ts";
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
  request: FastifyRequest,
  dependencies: InferenceDependencies,
): Promise<StoredTurns | undefined> {
  const { responses } = dependencies;
  const { key } = callerOf(request);
  if (!responses.mayStore(key)) return undefined;
  const named = namedTurns(body);
  if (named.latest.size + named.referred.size > 0) await assertModel(body, request, dependencies);
  // The stored turns take room as if they arrived with the body.
  return responses.turnsNamed(key.id, named, (bytes) => stateOf(request).arriving?.grow(bytes));
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
