/** Example requests by what they show. They use a common model; a deployment may have other models. */
interface RequestExample {
  readonly summary: string;
  readonly value: Readonly<Record<string, unknown>> & { readonly model: string };
}
type RequestExamples = Readonly<Record<string, RequestExample>>;

const model = "llama3.2";
const seeing = "llama3.2-vision";
const embedder = "nomic-embed-text";
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

export const chatExamples: RequestExamples = {
  question: { summary: "A question, answered whole", value: { model, messages: [user(why)] } },
  stream: {
    summary: "The same, piece by piece and with its usage",
    value: { model, messages: [user(why)], stream: true, stream_options: { include_usage: true } },
  },
  tools: { summary: "A tool that the model may call", value: { model, messages: [user(umbrella)], tools } },
  tool_answer: {
    summary: "What the tool answered",
    value: {
      model,
      messages: [
        user(umbrella),
        { role: "assistant", content: null, tool_calls: [called] },
        { role: "tool", tool_call_id: "call_1", content: rain },
      ],
      tools,
    },
  },
  image: { summary: "A question about an image", value: { model: seeing, messages: [user(shown)] } },
  json: {
    summary: "An answer that fits a schema",
    value: {
      model,
      messages: [user("Name a city and its country.")],
      response_format: { type: "json_schema", json_schema: city },
    },
  },
};

const functions = [{ type: "function", ...weather }];
const shownAsInput = [
  { type: "input_text", text: "What is this?" },
  { type: "input_image", image_url: url },
];

export const responseExamples: RequestExamples = {
  question: {
    summary: "A question, answered whole",
    value: { model, input: why, instructions: "Answer like a pirate." },
  },
  stream: { summary: "The same, piece by piece", value: { model, input: [user(why)], stream: true } },
  tools: { summary: "A function that the model may call", value: { model, input: umbrella, tools: functions } },
  tool_answer: {
    summary: "What the function gave",
    value: {
      model,
      input: [
        user(umbrella),
        { type: "function_call", call_id: "call_1", name, arguments: args },
        { type: "function_call_output", call_id: "call_1", output: rain },
      ],
      tools: functions,
    },
  },
  image: { summary: "A question about an image", value: { model: seeing, input: [user(shownAsInput)] } },
  json: {
    summary: "An answer that fits a schema",
    value: { model, input: "Name a city and its country.", text: { format: { type: "json_schema", ...city } } },
  },
};

const max_tokens = 1_024;
const shownInBlocks = [
  { type: "text", text: "What is this?" },
  { type: "image", source: { type: "base64", media_type: "image/png", data: url.slice(url.indexOf(",") + 1) } },
];
const ownTools = [{ name, description: weather.description, input_schema: weather.parameters }];

export const messageExamples: RequestExamples = {
  question: {
    summary: "A question, answered whole",
    value: { model, max_tokens, system: "Answer like a pirate.", messages: [user(why)] },
  },
  stream: { summary: "The same, piece by piece", value: { model, max_tokens, messages: [user(why)], stream: true } },
  tools: {
    summary: "A tool that the model may call",
    value: { model, max_tokens, messages: [user(umbrella)], tools: ownTools },
  },
  tool_answer: {
    summary: "What the tool gave",
    value: {
      model,
      max_tokens,
      messages: [
        user(umbrella),
        { role: "assistant", content: [{ type: "tool_use", id: "call_1", name, input: { city: "Oslo" } }] },
        user([{ type: "tool_result", tool_use_id: "call_1", content: rain }]),
      ],
      tools: ownTools,
    },
  },
  image: {
    summary: "A question about an image",
    value: { model: seeing, max_tokens, messages: [user(shownInBlocks)] },
  },
  json: {
    summary: "An answer that fits a schema",
    value: {
      model,
      max_tokens,
      messages: [user("Name a city and its country.")],
      output_config: { format: { type: "json_schema", schema } },
    },
  },
};

export const countExamples: RequestExamples = {
  question: { summary: "A question", value: { model, messages: [user(why)] } },
};

export const completionExamples: RequestExamples = {
  text: { summary: "A text that is continued", value: { model, prompt: "Once upon a time", max_tokens: 64 } },
};

export const embeddingsExamples: RequestExamples = {
  text: { summary: "One text", value: { model: embedder, input: "The sky is blue." } },
  texts: {
    summary: "Several texts, in the smaller form",
    value: { model: embedder, input: ["The sky is blue.", "Grass is green."], encoding_format: "base64" },
  },
};
