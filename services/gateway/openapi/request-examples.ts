import type { OperationId } from "./public-api.ts";

/** Returns an example request. The models are those of the demonstration, which `npm start` serves. */
const example = (summary: string, request: Readonly<Record<string, unknown>>) => ({
  summary,
  value: { model: "scripted", ...request },
});

const seeing = { model: "scripted:vision" };
const embedder = { model: "scripted:embed" };
const why = "Why is the sky blue? One sentence.";
const umbrella = "Do I need an umbrella in Oslo?";
const rain = "Rain until four.";
const name = "get_weather";
const args = '{"city":"Oslo"}';
const user = (content: unknown) => ({ role: "user", content });
const text = { type: "string" };

/** A PNG image of one white pixel. */
const url =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

const weather = {
  name,
  description: "The weather in a city just now.",
  parameters: { type: "object", properties: { city: text }, required: ["city"] },
};

const properties = { city: text, country: text };
const schema = { type: "object", properties, required: ["city", "country"], additionalProperties: false };
const city = { name: "city", strict: true, schema };

const tools = [{ type: "function", function: weather }];
const called = { id: "call_1", type: "function", function: { name, arguments: args } };
const shown = [
  { type: "text", text: "What is this?" },
  { type: "image_url", image_url: { url } },
];
const geography = [user("Name a city and its country.")];

const functions = [{ type: "function", ...weather }];
const shownAsInput = [
  { type: "input_text", text: "What is this?" },
  { type: "input_image", image_url: url },
];
const max_tokens = 1_024;
const shownInBlocks = [
  { type: "text", text: "What is this?" },
  { type: "image", source: { type: "base64", media_type: "image/png", data: url.slice(url.indexOf(",") + 1) } },
];
const ownTools = [{ name, description: weather.description, input_schema: weather.parameters }];

/** Example requests of each operation whose body is JSON. */
export const requestExamples: Readonly<Partial<Record<OperationId, object>>> = {
  createChatCompletion: {
    question: example("A question, answered whole", { messages: [user(why)] }),
    stream: example("The same, piece by piece and with its usage", {
      messages: [user(why)],
      stream: true,
      stream_options: { include_usage: true },
    }),
    tools: example("A tool that the model may call", { messages: [user(umbrella)], tools }),
    tool_answer: example("What the tool answered", {
      messages: [
        user(umbrella),
        { role: "assistant", content: null, tool_calls: [called] },
        { role: "tool", tool_call_id: "call_1", content: rain },
      ],
      tools,
    }),
    image: example("A question about an image", { ...seeing, messages: [user(shown)] }),
    json: example("An answer that fits a schema", {
      messages: geography,
      response_format: { type: "json_schema", json_schema: city },
    }),
  },
  createResponse: {
    question: example("A question, answered whole", { input: why, instructions: "Answer like a pirate." }),
    stream: example("The same, piece by piece", { input: [user(why)], stream: true }),
    tools: example("A function that the model may call", { input: umbrella, tools: functions }),
    tool_answer: example("What the function gave", {
      input: [
        user(umbrella),
        { type: "function_call", call_id: "call_1", name, arguments: args },
        { type: "function_call_output", call_id: "call_1", output: rain },
      ],
      tools: functions,
    }),
    image: example("A question about an image", { ...seeing, input: [user(shownAsInput)] }),
    json: example("An answer that fits a schema", {
      input: "Name a city and its country.",
      text: { format: { type: "json_schema", ...city } },
    }),
  },
  createMessage: {
    question: example("A question, answered whole", {
      max_tokens,
      system: "Answer like a pirate.",
      messages: [user(why)],
    }),
    stream: example("The same, piece by piece", { max_tokens, messages: [user(why)], stream: true }),
    tools: example("A tool that the model may call", { max_tokens, messages: [user(umbrella)], tools: ownTools }),
    tool_answer: example("What the tool gave", {
      max_tokens,
      messages: [
        user(umbrella),
        { role: "assistant", content: [{ type: "tool_use", id: "call_1", name, input: { city: "Oslo" } }] },
        user([{ type: "tool_result", tool_use_id: "call_1", content: rain }]),
      ],
      tools: ownTools,
    }),
    image: example("A question about an image", { ...seeing, max_tokens, messages: [user(shownInBlocks)] }),
    json: example("An answer that fits a schema", {
      max_tokens,
      messages: geography,
      output_config: { format: { type: "json_schema", schema } },
    }),
  },
  countMessageTokens: { question: example("A question", { messages: [user(why)] }) },
  createCompletion: { text: example("A text that is continued", { prompt: "Once upon a time", max_tokens: 64 }) },
  createEmbedding: {
    text: example("One text", { ...embedder, input: "The sky is blue." }),
    texts: example("Several texts, in the smaller form", {
      ...embedder,
      input: ["The sky is blue.", "Grass is green."],
      encoding_format: "base64",
    }),
  },
  createConversation: {
    begun: { summary: "One that has begun", value: { items: [user("My name is Ann.")], metadata: { topic: "names" } } },
  },
  createConversationItems: { message: { summary: "A message", value: { items: [user("My name is Ann.")] } } },
  rerank: {
    best: example("Two documents", { ...embedder, query: why, documents: ["Grass is green.", "Air scatters blue."] }),
  },
  score: { two: example("Two texts", { ...embedder, text_1: why, text_2: ["Grass is green.", "Air scatters blue."] }) },
  createSpeech: {
    sentence: example("A sentence", { model: "kokoro", input: why, voice: "af_heart", response_format: "wav" }),
  },
  createImage: {
    sky: example("One image", { model: "flux", prompt: "A blue sky.", size: "512x512", response_format: "b64_json" }),
  },
  createModeration: { text: example("One text", { model: "guard", input: why }) },
  tokenize: { text: example("One text", { model: "llama3.2", prompt: why }) },
  detokenize: { tokens: example("Three tokens", { model: "llama3.2", tokens: [1, 2, 3] }) },
  ollamaChat: {
    question: example("A question, answered in lines", { messages: [user(why)] }),
    tools: example("A tool that the model may call", { messages: [user(umbrella)], tools, stream: false }),
    json: example("An answer that fits a schema", { messages: geography, format: schema, stream: false }),
  },
  ollamaGenerate: { prompt: example("One prompt", { prompt: why, options: { num_predict: 64 } }) },
  ollamaEmbed: { texts: example("Several texts", { ...embedder, input: ["The sky is blue.", "Grass is green."] }) },
  ollamaEmbeddings: { text: example("One text", { ...embedder, prompt: "The sky is blue." }) },
  ollamaShow: { model: example("A model of the demonstration", {}) },
};
