import type { PublicOperation } from "./public-operation.ts";
import { refusalsOfDecimals, refusalsOfJobs, refusalsOfKeys, refusalsOfMachines } from "./public-refusals.ts";
import { chatExamples, completionExamples, embeddingsExamples, responseExamples } from "./request-examples.ts";

const asksModel = { method: "POST", open: false, headers: [] } as const;
const open = { method: "GET", open: true, refusals: [], headers: [] } as const;

/** All operations of the public port, the most used first. */
export const publicApi: Readonly<Record<string, PublicOperation>> = {
  createChatCompletion: {
    ...asksModel,
    path: "/v1/chat/completions",
    tag: "Chat",
    summary: "Have a model answer a conversation",
    description:
      "The answer comes whole, or with `stream` piece by piece. A client that closes the connection stops the model. What the model's runtime cannot honour is refused by name and never dropped in silence.",
    body: { schema: "ChatRequest", examples: chatExamples },
    answer: "ChatCompletion",
    chunk: "ChatCompletionChunk",
    refusals: [...refusalsOfJobs, ...refusalsOfDecimals, "tool_messages_out_of_order", "model_does_not_support_tools"],
  },
  createResponse: {
    ...asksModel,
    path: "/v1/responses",
    tag: "Responses",
    summary: "Have a model answer, in items and events",
    description:
      "The same as a chat, told in items and events, for clients that speak the Responses API. No response is kept: send the whole conversation in `input`, with the items of earlier answers as they came. The tools are functions of your own.",
    body: { schema: "ResponseRequest", examples: responseExamples },
    answer: "Response",
    chunk: "ResponseEvent",
    endsBy: "event",
    refusals: [...refusalsOfJobs, ...refusalsOfDecimals, "tool_messages_out_of_order", "model_does_not_support_tools"],
  },
  createCompletion: {
    ...asksModel,
    path: "/v1/completions",
    tag: "Completions",
    summary: "Have a model continue a text",
    description:
      "The older form: the text goes to the model as it is, without a template and without roles. For tools that complete code, and for base models.",
    body: { schema: "CompletionRequest", examples: completionExamples },
    answer: "TextCompletion",
    chunk: "TextCompletionChunk",
    refusals: [...refusalsOfJobs, ...refusalsOfDecimals],
  },
  createEmbedding: {
    ...asksModel,
    path: "/v1/embeddings",
    tag: "Embeddings",
    summary: "Make vectors of texts",
    description: "One vector for each text, in the order of the texts.",
    body: { schema: "EmbeddingsRequest", examples: embeddingsExamples },
    answer: "EmbeddingList",
    refusals: refusalsOfJobs,
  },
  listModels: {
    method: "GET",
    path: "/v1/models",
    tag: "Models",
    open: false,
    summary: "List the models that the key may use",
    description:
      "Every machine is asked at this moment, so this is also the health check: 200 means that the site and a machine are both well.",
    answer: "ModelList",
    refusals: [...refusalsOfKeys, ...refusalsOfMachines],
    headers: ["x-trunkline-unanswered"],
  },
  retrieveModel: {
    method: "GET",
    path: "/v1/models/{id}",
    tag: "Models",
    open: false,
    summary: "Look one model up",
    description: "What `GET /v1/models` says of it, if it is there.",
    params: { id: "The model's id. A `:` or `/` in it stands as it is or percent-encoded." },
    answer: "Model",
    refusals: [...refusalsOfKeys, ...refusalsOfMachines, "model_not_found"],
    headers: [],
  },
  getHealth: {
    ...open,
    path: "/healthz",
    tag: "Health",
    summary: "See that this gateway runs",
    description: "Asks no machine and no store.",
    answer: "Health",
  },
  getReadiness: {
    ...open,
    path: "/readyz",
    tag: "Health",
    summary: "See whether this gateway can serve",
    description: "For balancers. Machines are not asked: a gateway is not taken out because they are away.",
    answer: "Readiness",
    otherwise: { status: 503, schema: "Readiness" },
  },
  getOpenApi: {
    ...open,
    path: "/openapi.json",
    tag: "Reference",
    summary: "Read this document",
    description: "OpenAPI 3.1, written from the schemas that requests are read with.",
    answer: { media: "application/json" },
  },
  getDocs: {
    ...open,
    path: "/docs",
    tag: "Reference",
    summary: "Read it as a page",
    description: "One page for people, made of the document.",
    answer: { media: "text/html" },
  },
};
