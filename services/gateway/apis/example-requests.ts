/** Returns an example request. The models are those of the demonstration, which `npm start` serves. */
export const example = (summary: string, request: object) => ({ summary, value: { model: "scripted", ...request } });

export const user = (content: unknown) => ({ role: "user", content });

const image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";
const embedder = { model: "scripted:embed" };
const city = { type: "string" };
const properties = { city, country: city };

/** Values in the examples of several APIs: questions, a tool with a call and its result, a white pixel, a schema. */
export const sample = {
  embedder,
  texts: { ...embedder, input: ["The sky is blue.", "Grass is green."] },
  why: "Why is the sky blue? One sentence.",
  umbrella: "Do I need an umbrella in Oslo?",
  geography: "Name a city and its country.",
  whatIsThis: "What is this?",
  weather: {
    name: "get_weather",
    description: "The weather in a city just now.",
    parameters: { type: "object", properties: { city }, required: ["city"] },
  },
  call: { name: "get_weather", arguments: '{"city":"Oslo"}' },
  rain: "Rain until four.",
  image,
  imageUrl: `data:image/png;base64,${image}`,
  city: {
    name: "city",
    strict: true,
    schema: { type: "object", properties, required: ["city", "country"], additionalProperties: false },
  },
};

/**
 * Returns the examples of an API for conversations from the parts that it writes in its own fields. `turns` are the call of
 * a tool and its result.
 */
export function conversationExamples(
  ask: (content: unknown, ...turns: readonly object[]) => object,
  { tools, json, turns, shown }: Record<"tools" | "json", object> & Record<"turns" | "shown", readonly object[]>,
) {
  const { why, umbrella, geography } = sample;
  return {
    question: example("A question, answered whole", ask(why)),
    stream: example("The same, piece by piece", { ...ask(why), stream: true }),
    tools: example("A tool that the model may call", { ...ask(umbrella), ...tools }),
    tool_answer: example("The result of the tool", { ...ask(umbrella, ...turns), ...tools }),
    image: example("A question about an image", { ...ask(shown), model: "scripted:vision" }),
    json: example("An answer that fits a schema", { ...ask(geography), ...json }),
  };
}
