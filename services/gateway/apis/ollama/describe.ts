import { z } from "zod";
import * as requests from "./ollama-schema.ts";
import { count, text } from "../answer-parts.ts";
import { causes, tokenLogprob } from "../openai-answers.ts";
import { type ApiDescription, get, post } from "../description.ts";
import { example, sample, user } from "../example-requests.ts";

const facts = (what: string) => z.record(z.string(), z.unknown()).describe(what);
const last = (what: string) => count.optional().describe(`${what}. Only in the last line.`);
const model = text("The model by the name that was asked for.");

const durations = {
  total_duration: last("The time on the machine, in nanoseconds"),
  load_duration: last("The time in which the machine loaded the model, in nanoseconds"),
  prompt_eval_count: last("The tokens of the prompt, or of all texts"),
};
const line = {
  model,
  created_at: text("The time at which the answer was begun."),
  logprobs: z.array(tokenLogprob).optional(),
  done: z.boolean().describe("True in the last line, which comes after a success only."),
  done_reason: text("The reason for the end: `stop`, `length`, or `load` where nothing was asked.").optional(),
  ...durations,
  prompt_eval_duration: last("The time until the first token, in nanoseconds"),
  eval_count: last("The tokens of the answer"),
  eval_duration: last("The time behind the first token, in nanoseconds"),
  x_trunkline: text("The reason for a wait, in a line without any text.").optional(),
};
const { role, content, thinking, tool_calls } = requests.ollamaMessage.shape;

/** An answer whole, or one line of it. Calls of tools come in one line, before the last. */
const message = z.object({ role, content, thinking, tool_calls }).describe("The message, or a piece of it.");
const ollamaChatAnswer = z.object({ ...line, message });
const ollamaPromptAnswer = z.object({ ...line, response: text("The text, or a piece of it."), thinking });

const vector = z.array(z.number());
const embeddings = z.array(vector).describe("One vector for each text, in the order of the texts.");
const ollamaVectors = z.object({ model, embeddings, ...durations });
const ollamaVector = z.object({ embedding: vector.describe("The vector.") });

const known = {
  details: facts("`context_length` is the context window. All else is empty: the machines do not tell it."),
  capabilities: z.array(z.string()).optional().describe("The abilities of the model, such as `tools`."),
  modified_at: text("The time at which the model came to be.").optional(),
};
const listed = z.object({
  name: text("The name for requests, always with a tag."),
  model: text("The same."),
  digest: text("A hash of what is known of the model."),
  ...known,
  size: count.describe("Its bytes on a disk, or in memory where that was measured."),
  size_vram: count.optional().describe("The same: which part lies in graphics memory is unknown."),
  expires_at: text("A time that never comes: machines decide when a model leaves.").optional(),
  context_length: count.optional().describe("The most tokens that a request and its answer have together."),
});
const ollamaModels = z.object({ models: z.array(listed).describe("The models that the key may use.") });

const empty = text("Always empty: it stays on the machine.");
const model_info = facts("`general.architecture` is `unknown`, and `unknown.context_length` is the context window.");
const ollamaShown = z.object({ modelfile: empty, parameters: empty, template: empty, ...known, model_info });
const ollamaVersion = z.object({ version: text("The version of Ollama's API.") });

const status = text("The same, where the key is missing or wrong.").optional();
const ollamaError = z.object({ error: text("The error and its remedy, for a person."), status, ...causes });

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
