import { inClientWords } from "../../chats/render-completions.ts";
import type { Endpoint } from "../../requests/endpoint.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import { withoutLatest } from "../../requests/resolve-model.ts";
import type { Api } from "../api.ts";
import { describeOllama } from "./describe.ts";
import type { OllamaForm, OllamaTerms } from "./ollama-request.ts";
import { ollamaRoutes, takeJsonByHabit } from "./ollama-routes.ts";
import { loadedAnswer, ollamaFaults, renderOllama } from "./render-ollama.ts";

const endpointOf = (shape: OllamaTerms["shape"]): Endpoint => ({
  kind: `ollama-${shape}`,
  path: `/${shape}`,
  idPrefix: "ollama-",
  rendering: ({ form, stream: streamed }: ReadRequest<OllamaForm>) =>
    inClientWords(form, renderOllama(form.terms, { streamed })),
  meantModel: withoutLatest,
  countOf: ({ form: { terms } }: ReadRequest<OllamaForm>) =>
    terms.loads ? (_exchange, { clock }) => loadedAnswer(terms, clock.wall()) : undefined,
});

/** Ollama's API. Its bodies are JSON, whatever they are called. */
export const api: Api = {
  prefix: "/api",
  descriptions: [describeOllama],
  faults: ollamaFaults,
  beforeBody: takeJsonByHabit,
  others: ollamaRoutes,
  endpoints: [endpointOf("chat"), endpointOf("generate"), endpointOf("embed"), endpointOf("embeddings")],
};
