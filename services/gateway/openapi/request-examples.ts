/** Example requests by what they show. They use a common model; a deployment may have other models. */
interface RequestExample {
  readonly summary: string;
  readonly value: Readonly<Record<string, unknown>> & { readonly model: string };
}
type RequestExamples = Readonly<Record<string, RequestExample>>;

const model = "llama3.2";
const question = { role: "user", content: "Why is the sky blue? One sentence." };

/** A PNG image of one white pixel. */
const onePixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city just now.",
    parameters: {
      type: "object",
      properties: { city: { type: "string", description: "The name of the city." } },
      required: ["city"],
    },
  },
};

const city = {
  name: "city",
  strict: true,
  schema: {
    type: "object",
    properties: { city: { type: "string" }, country: { type: "string" } },
    required: ["city", "country"],
    additionalProperties: false,
  },
};

export const chatExamples: RequestExamples = {
  question: { summary: "A question, answered whole", value: { model, messages: [question] } },
  stream: {
    summary: "The same, piece by piece and with its usage",
    value: { model, messages: [question], stream: true, stream_options: { include_usage: true } },
  },
  tools: {
    summary: "A tool that the model may call",
    value: { model, messages: [{ role: "user", content: "Do I need an umbrella in Oslo?" }], tools: [weather] },
  },
  tool_answer: {
    summary: "What the tool answered",
    value: {
      model,
      messages: [
        { role: "user", content: "Do I need an umbrella in Oslo?" },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "Rain until four." },
      ],
      tools: [weather],
    },
  },
  image: {
    summary: "A question about an image",
    value: {
      model: "llama3.2-vision",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image_url", image_url: { url: onePixel } },
          ],
        },
      ],
    },
  },
  json: {
    summary: "An answer that fits a schema",
    value: {
      model,
      messages: [{ role: "user", content: "Name a city and its country." }],
      response_format: {
        type: "json_schema",
        json_schema: city,
      },
    },
  },
};

const { function: weatherFunction } = weather;

export const responseExamples: RequestExamples = {
  question: {
    summary: "A question, answered whole",
    value: { model, input: "Why is the sky blue? One sentence.", instructions: "Answer like a pirate." },
  },
  stream: { summary: "The same, piece by piece", value: { model, input: [question], stream: true } },
  tools: {
    summary: "A function that the model may call",
    value: { model, input: "Do I need an umbrella in Oslo?", tools: [{ type: "function", ...weatherFunction }] },
  },
  tool_answer: {
    summary: "What the function gave",
    value: {
      model,
      input: [
        { role: "user", content: "Do I need an umbrella in Oslo?" },
        { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"city":"Oslo"}' },
        { type: "function_call_output", call_id: "call_1", output: "Rain until four." },
      ],
      tools: [{ type: "function", ...weatherFunction }],
    },
  },
  image: {
    summary: "A question about an image",
    value: {
      model: "llama3.2-vision",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", image_url: onePixel },
          ],
        },
      ],
    },
  },
  json: {
    summary: "An answer that fits a schema",
    value: {
      model,
      input: "Name a city and its country.",
      text: { format: { type: "json_schema", ...city } },
    },
  },
};

export const completionExamples: RequestExamples = {
  text: { summary: "A text that is continued", value: { model, prompt: "Once upon a time", max_tokens: 64 } },
};

const embedder = "nomic-embed-text";

export const embeddingsExamples: RequestExamples = {
  text: { summary: "One text", value: { model: embedder, input: "The sky is blue." } },
  texts: {
    summary: "Several texts, in the smaller form",
    value: { model: embedder, input: ["The sky is blue.", "Grass is green."], encoding_format: "base64" },
  },
};
