import { z } from "zod";
import * as requests from "./ollama-schema.ts";
import { count, text } from "../answer-parts.ts";
import { tokenLogprob } from "../openai-answers.ts";
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
const ollamaShown = z.object({
  modelfile: empty,
  parameters: empty,
  template: empty,
  ...known,
  model_info: facts("`general.architecture` is `unknown`, and `unknown.context_length` is the context window."),
});
const ollamaVersion = z.object({ version: text("The version of Ollama's API.") });

const ollamaError = z.object({
  error: text("The error and its remedy, for a person."),
  status: text("The same, where the key is missing or wrong.").optional(),
  code: z.string().nullable(),
  param: z.string().nullable(),
});

const { ollamaChatRequest, ollamaGenerateRequest, ollamaEmbedRequest, ollamaEmbeddingsRequest } = requests;
const { ollamaShowRequest, ollamaMessage, unsupportedOllamaFields: refuses } = requests;

export const describeOllama: ApiDescription = {
  tag: "Ollama",
  description: "The same for clients of Ollama's.",
  errors: [ollamaError],
  stream: {
    ends: "Each line is one JSON object, as long as `stream` is not false. The last has `done`. What fails in between is told as an error in place of a line, and nothing follows it.",
    inLines: true,
  },
  refusedAs: "settings",
  schemas: [
    { ollamaChatRequest, ollamaPromptRequest: ollamaGenerateRequest, ollamaTextsRequest: ollamaEmbedRequest },
    { ollamaTextRequest: ollamaEmbeddingsRequest, ollamaShowRequest, ollamaMessage, ollamaChatAnswer, ollamaError },
    { ollamaPromptAnswer, ollamaVectors, ollamaVector, ollamaModels, ollamaShown, ollamaVersion },
  ],
  operations: [
    post("ollamaChat", "/api/chat", [ollamaChatRequest, ollamaChatAnswer, ollamaChatAnswer], {
      text: "Have a model answer, for Ollama's clients. The same as a chat, for clients that speak Ollama's API. Their base URL is the address without `/v1`. Any model answers, whatever serves it. `keep_alive`, `num_ctx` and other settings of the machine are ignored by name, and no prompt is cut. Models are pulled, copied and removed by the operator, so those routes answer 403.",
      refuses,
      refusals: ["tool_messages_out_of_order", "model_does_not_support_tools"],
      examples: {
        question: example("A question, answered in lines", { messages: [user(sample.why)] }),
        tools: example("A tool that the model may call", {
          messages: [user(sample.umbrella)],
          tools: [{ type: "function", function: sample.weather }],
          stream: false,
        }),
        json: example("An answer that fits a schema", {
          messages: [user(sample.geography)],
          format: sample.city.schema,
          stream: false,
        }),
      },
    }),
    post("ollamaGenerate", "/api/generate", [ollamaGenerateRequest, ollamaPromptAnswer, ollamaPromptAnswer], {
      text: "Have a model answer one prompt. The prompt is one message of a chat. With `raw` or `suffix` it goes to the model as it is. `template` and `context` are refused.",
      refuses,
      examples: { prompt: example("One prompt", { prompt: sample.why, options: { num_predict: 64 } }) },
    }),
    post("ollamaEmbed", "/api/embed", [ollamaEmbedRequest, ollamaVectors], {
      text: "Make vectors of texts. One vector for each text, in their order. No text is cut: one that is too long is an error.",
      examples: {
        texts: example("Several texts", { ...sample.embedder, input: ["The sky is blue.", "Grass is green."] }),
      },
    }),
    post("ollamaEmbeddings", "/api/embeddings", [ollamaEmbeddingsRequest, ollamaVector], {
      text: "Make the vector of one text. The older form of `/api/embed`.",
      examples: { text: example("One text", { ...sample.embedder, prompt: "The sky is blue." }) },
    }),
    get("ollamaTags", "/api/tags", ollamaModels, {
      text: "List the models that the key may use. The same models as of `GET /v1/models`, each with a tag.",
      refusedAs: "machines",
    }),
    get("ollamaLoaded", "/api/ps", ollamaModels, {
      text: "List the models in memory. Of the models that the key may use, those that a machine reports to have in its memory.",
      refusedAs: "machines",
    }),
    post("ollamaShow", "/api/show", [ollamaShowRequest, ollamaShown], {
      text: "Look one model up. Its capabilities, and its context window in `model_info`.",
      refusedAs: "machines",
      refusals: ["model_not_found"],
      examples: { model: example("A model of the demonstration", {}) },
    }),
    get("ollamaVersion", "/api/version", ollamaVersion, {
      text: "Read the version of Ollama's API. Clients compare it before they use a newer feature.",
      refusedAs: "nothing",
    }),
  ],
};
