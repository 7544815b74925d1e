import { z } from "zod";
import * as requests from "./ollama-schema.ts";
import { count, maybeText, numbers, text } from "../answer-parts.ts";
import { causes, tokenLogprob } from "../openai-answers.ts";
import { type ApiDescription, get, post } from "../description.ts";
import { example, sample, user } from "../example-requests.ts";

const facts = z.record(text, z.unknown());
const maybe = count.optional();

const durations = { total_duration: maybe, load_duration: maybe, prompt_eval_count: maybe };
const line = {
  model: text,
  created_at: text,
  logprobs: z.array(tokenLogprob).optional(),
  done: z.boolean(),
  done_reason: maybeText,
  ...durations,
  prompt_eval_duration: maybe,
  eval_count: maybe,
  eval_duration: maybe,
  x_trunkline: maybeText,
};
const { role, content, thinking, tool_calls } = requests.ollamaMessage.shape;

/** An answer whole, or one line of it. Calls of tools come in one line, before the last. */
const ollamaChatAnswer = z.object({ ...line, message: z.object({ role, content, thinking, tool_calls }) });
const ollamaPromptAnswer = z.object({ ...line, response: text, thinking });
const ollamaVectors = z.object({ model: text, embeddings: z.array(numbers), ...durations });
const ollamaVector = z.object({ embedding: numbers });

const known = { details: facts, capabilities: z.array(text).optional(), modified_at: maybeText };
const listed = z.object({
  name: text,
  model: text,
  digest: text,
  ...known,
  size: count,
  size_vram: maybe,
  expires_at: maybeText,
  context_length: maybe,
});
const ollamaModels = z.object({ models: z.array(listed) });
const ollamaShown = z.object({ modelfile: text, parameters: text, template: text, ...known, model_info: facts });
const ollamaVersion = z.object({ version: text });
const ollamaError = z.object({ error: text, status: maybeText, ...causes });

const { ollamaChatRequest, ollamaGenerateRequest, ollamaEmbedRequest, ollamaEmbeddingsRequest } = requests;
const { ollamaShowRequest, ollamaMessage, unsupportedOllamaFields: refuses } = requests;

const ask = (question: string, rest: object) => ({ messages: [user(question)], ...rest });
const tools = { tools: [{ type: "function", function: sample.weather }], stream: false };
const examples = {
  question: example("A question, answered in lines", ask(sample.why, {})),
  tools: example("A tool that the model may call", ask(sample.umbrella, tools)),
  json: example("An answer that fits a schema", ask(sample.geography, { format: sample.city.schema, stream: false })),
};

export const describeOllama: ApiDescription = {
  tag: "Ollama",
  errors: [ollamaError],
  stream: "lines",
  refusedAs: "settings",
  schemas: [
    { ollamaChatRequest, ollamaPromptRequest: ollamaGenerateRequest, ollamaTextsRequest: ollamaEmbedRequest },
    { ollamaTextRequest: ollamaEmbeddingsRequest, ollamaShowRequest, ollamaMessage, ollamaChatAnswer, ollamaError },
    { ollamaPromptAnswer, ollamaVectors, ollamaVector, ollamaModels, ollamaShown, ollamaVersion },
  ],
  operations: [
    post("ollamaChat", "ollama-chat", [ollamaChatRequest, ollamaChatAnswer, ollamaChatAnswer], {
      refuses,
      refusedAs: "chat",
      examples,
    }),
    post("ollamaGenerate", "ollama-generate", [ollamaGenerateRequest, ollamaPromptAnswer, ollamaPromptAnswer], {
      refuses,
      examples: { prompt: example("One prompt", { prompt: sample.why, options: { num_predict: 64 } }) },
    }),
    post("ollamaEmbed", "ollama-embed", [ollamaEmbedRequest, ollamaVectors], {
      examples: { texts: example("Several texts", sample.texts) },
    }),
    post("ollamaEmbeddings", "ollama-embeddings", [ollamaEmbeddingsRequest, ollamaVector], {
      examples: { text: example("One text", { ...sample.embedder, prompt: "The sky is blue." }) },
    }),
    get("ollamaTags", "/api/tags", ollamaModels, { refusedAs: "machines" }),
    get("ollamaLoaded", "/api/ps", ollamaModels, { refusedAs: "machines" }),
    post("ollamaShow", "/api/show", [ollamaShowRequest, ollamaShown], {
      refusedAs: "machines",
      refusals: ["model_not_found"],
      examples: { model: example("A model of the demonstration", {}) },
    }),
    get("ollamaVersion", "/api/version", ollamaVersion, { refusedAs: "nothing" }),
  ],
};
