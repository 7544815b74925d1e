/** A request of many pieces. A gateway reads it on its event loop: it is just small enough for that. */
export interface ManyPieces {
  readonly name: string;
  readonly outer: "chat" | "message" | "response" | "completion" | "embeddings" | "rerank" | "score" | "ollama-chat";
  /** The most pieces that a request has in the bench. */
  readonly most: number;
  readonly fields: (count: number) => object;
}

export const many = <T>(count: number, make: (place: number) => T): T[] =>
  Array.from({ length: count }, (_, place) => make(place));

const hello = { role: "user", content: "Hello" };
const tiny = { type: "text", text: "a" };
const user = (content: unknown): object => ({ role: "user", content });
const assistant = (content: unknown): object => ({ role: "assistant", content });
const call = (id: string): object => ({ id, type: "function", function: { name: "f.g", arguments: "{}" } });
const tool = (place: number): object => ({ type: "function", function: { name: `files.t${place}` } });
const named = (place: number): object => ({ type: "function", name: `files.t${place}` });
const used = (id: string): object => ({ type: "tool_use", id, name: "f", input: {} });
const gave = (id: string, content: unknown): object => ({ type: "tool_result", tool_use_id: id, content });

/** Requests of as many messages, parts, tools and calls as fit, in each API. */
export const manyPieces: readonly ManyPieces[] = [
  chat("messages of a chat", 8_000, (count) => ({ messages: many(count, () => user("a")) })),
  chat("answers in a chat", 7_000, (count) => ({ messages: many(count, () => assistant("a")) })),
  chat("parts of a chat", 9_000, (count) => ({ messages: [user(many(count, () => tiny))] })),
  chat("thoughts of a chat", 6_000, (count) => ({
    messages: [assistant(many(count, () => ({ type: "thinking", thinking: "a" }))), hello],
  })),
  chat("calls of a chat", 1_900, (count) => ({
    messages: [
      { ...assistant(null), tool_calls: many(count, (place) => call(`c${place}`)) },
      ...many(count, (place) => ({ role: "tool", tool_call_id: `c${place}`, content: "a" })),
    ],
  })),
  chat("tools of a chat, all allowed by name", 512, (count) => ({
    messages: [hello],
    tools: many(count, tool),
    tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: many(count, tool).toReversed() } },
  })),
  message("turns of a user", 8_000, (count) => ({ messages: many(count, () => user("a")) })),
  message("turns of a user in parts", 4_500, (count) => ({ messages: many(count, () => user([tiny])) })),
  message("turns of the assistant", 7_000, (count) => ({ messages: [hello, ...many(count, () => assistant("a"))] })),
  message("turns of thought", 3_000, (count) => ({
    messages: [hello, ...many(count, () => assistant([{ type: "thinking", thinking: "aaa" }])), hello],
  })),
  message("system messages", 8_000, (count) => ({
    messages: [hello, ...many(count, () => ({ role: "system", content: "a" }))],
  })),
  message("parts of a message", 9_000, (count) => ({ messages: [user(many(count, () => tiny))] })),
  message("results of tools", 2_000, (count) => ({
    messages: [
      assistant(many(count, (place) => used(`c${place}`))),
      user(many(count, (place) => gave(`c${place}`, "a"))),
    ],
  })),
  message("names of loaded tools", 5_000, (count) => ({
    messages: [
      assistant([used("c")]),
      user([
        gave(
          "c",
          many(count, () => ({ type: "tool_reference", tool_name: "t0" })),
        ),
      ]),
    ],
    tools: many(512, (place) => ({ name: `t${place}`, input_schema: {}, defer_loading: place % 2 === 0 })),
  })),
  message("tools of a message", 512, (count) => ({
    messages: [hello],
    tools: many(count, (place) => ({ name: `files.t${place}`, input_schema: {} })),
  })),
  response("items of a response", 8_000, (count) => ({ input: many(count, () => user("a")) })),
  response("answers in a response", 7_000, (count) => ({ input: [hello, ...many(count, () => assistant("a"))] })),
  response("parts of a response", 7_000, (count) => ({
    input: [user(many(count, () => ({ type: "input_text", text: "a" })))],
  })),
  response("thoughts of a response", 3_000, (count) => ({
    input: [...many(count, () => ({ type: "reasoning", summary: [{ type: "summary_text", text: "a" }] })), hello],
  })),
  response("calls of a response", 1_800, (count) => ({
    input: [
      ...many(count, (place) => ({ type: "function_call", call_id: `c${place}`, name: "f", arguments: "{}" })),
      ...many(count, (place) => ({ type: "function_call_output", call_id: `c${place}`, output: "a" })),
    ],
  })),
  response("tools of a response, all allowed by name", 512, (count) => ({
    input: "Hello",
    tools: many(count, named),
    tool_choice: { type: "allowed_tools", mode: "auto", tools: many(count, named).toReversed() },
  })),
  response("tools of a namespace, all allowed by name", 512, (count) => ({
    input: "Hello",
    tools: [{ type: "namespace", name: "n", description: "a".repeat(1_000), tools: many(count, named) }],
    tool_choice: { type: "allowed_tools", mode: "auto", tools: many(count, named).toReversed() },
  })),
  ollama("messages for Ollama's API", 8_000, (count) => ({ messages: many(count, () => user("a")) })),
  ollama("images for Ollama's API", 8_000, (count) => ({
    messages: [{ ...hello, images: many(count, () => "iVBORw0KGgo=") }],
  })),
  ollama("calls for Ollama's API, answered in the other order", 512, (count) => ({
    messages: [
      { ...assistant(""), tool_calls: many(count, (place) => ({ function: { name: `f${place}`, arguments: {} } })) },
      ...many(count, (place) => ({ role: "tool", content: "a", tool_name: `f${count - 1 - place}` })),
    ],
  })),
  {
    name: "prompts of a completion",
    outer: "completion",
    most: 128,
    fields: (count) => ({ prompt: many(count, () => "a".repeat(2_000)) }),
  },
  {
    name: "texts to embed",
    outer: "embeddings",
    most: 2_048,
    fields: (count) => ({ model: "scripted:embed", input: many(count, () => "a".repeat(100)) }),
  },
  {
    name: "documents to rerank",
    outer: "rerank",
    most: 2_048,
    fields: (count) => ({ model: "scripted:embed", query: "a", documents: many(count, () => "a".repeat(100)) }),
  },
  {
    name: "texts to score",
    outer: "score",
    most: 2_048,
    fields: (count) => ({ model: "scripted:embed", text_1: "a", text_2: many(count, () => "a".repeat(100)) }),
  },
];

function chat(name: string, most: number, fields: ManyPieces["fields"]): ManyPieces {
  return { name, outer: "chat", most, fields };
}

function message(name: string, most: number, fields: ManyPieces["fields"]): ManyPieces {
  return { name, outer: "message", most, fields: (count) => ({ max_tokens: 9, ...fields(count) }) };
}

function ollama(name: string, most: number, fields: ManyPieces["fields"]): ManyPieces {
  return { name, outer: "ollama-chat", most, fields };
}

function response(name: string, most: number, fields: ManyPieces["fields"]): ManyPieces {
  return { name, outer: "response", most, fields };
}
