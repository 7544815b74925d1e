import { describe, expect, test } from "vitest";
import { everyRuntime, staged, type RuntimeName } from "./staged.ts";

const on = staged(everyRuntime);
const openAiShaped = ["vLLM", "llama-server", "LM Studio", "mlx-lm"] as const;
const hi = { role: "user", content: "Hi" };

describe("quirk 1: max_completion_tokens is not known to all, and max_tokens is", () => {
  test.each<[RuntimeName, object]>([
    ["Ollama", { options: { num_predict: 7 } }],
    ["vLLM", { max_tokens: 7 }],
    ["llama-server", { max_tokens: 7 }],
    ["LM Studio", { max_tokens: 7 }],
    ["mlx-lm", { max_tokens: 7 }],
  ])("%s is asked for %j", async (runtime, asked) => {
    for (const field of ["max_completion_tokens", "max_tokens"]) {
      const sent = await on(runtime).asked({ [field]: 7 });
      expect(sent).toMatchObject(asked);
      expect(sent).not.toHaveProperty("max_completion_tokens");
    }
  });

  test("mlx-lm stops after 512 tokens when nobody says a limit, and is told one that the window leaves room for", async () => {
    expect(await on("mlx-lm").asked({})).toMatchObject({ max_tokens: 4_095 });
  });

  test("vLLM refuses a limit beyond its window, which no answer can reach, and is sent the window", async () => {
    expect(await on("vLLM").asked({ max_completion_tokens: 40_000 })).toMatchObject({ max_tokens: 32_768 });
    expect(await on("vLLM").asked({ max_completion_tokens: 32_767 })).toMatchObject({ max_tokens: 32_767 });
  });
});

describe("quirk 2: what is said in several forms is sent in one", () => {
  const messages = [
    { role: "developer", content: "Be brief." },
    { role: "user", content: ["one ", "two"].map((text) => ({ type: "text", text })) },
  ];
  const plain = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "one two" },
  ];

  test.each(Object.keys(everyRuntime) as RuntimeName[])(
    "%s gets a developer's message as the system's, and parts of text as one string",
    async (runtime) => {
      expect(await on(runtime).asked({ messages })).toMatchObject({ messages: plain });
    },
  );

  const image = { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } };
  const withImage = [{ role: "user", content: [{ type: "text", text: "See" }, image] }];

  test.each<[RuntimeName, object]>([
    ["Ollama", { role: "user", content: "See", images: ["QUJD"] }],
    ["vLLM", { role: "user", content: [{ type: "text", text: "See" }, image] }],
    ["llama-server", { role: "user", content: [{ type: "text", text: "See" }, image] }],
    ["LM Studio", { role: "user", content: [{ type: "text", text: "See" }, image] }],
  ])("%s gets an image as %j", async (runtime, sent) => {
    expect(await on(runtime).asked({ messages: withImage })).toMatchObject({ messages: [sent] });
  });

  const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } };
  const history = [hi, { role: "assistant", content: null, tool_calls: [call] }, toolMessage("4")];

  test.each<[RuntimeName, object]>([
    [
      "Ollama",
      { role: "assistant", content: "", tool_calls: [{ id: "call_1", function: { name: "f", arguments: { a: 1 } } }] },
    ],
    ["vLLM", { role: "assistant", content: null, tool_calls: [call] }],
    ["llama-server", { role: "assistant", content: null, tool_calls: [call] }],
    ["LM Studio", { role: "assistant", tool_calls: [call] }],
    ["mlx-lm", { role: "assistant", content: "", tool_calls: [call] }],
  ])("%s gets an assistant that only called a tool as %j", async (runtime, sent) => {
    for (const content of [null, ""]) {
      const said = history.with(1, { role: "assistant", content, tool_calls: [call] });
      const { messages: got } = (await on(runtime).asked({ messages: said })) as { messages: unknown[] };
      expect(got[1]).toEqual(sent);
    }
  });
});

describe("quirk 3: what a tool said, and what it was called with", () => {
  const called = (text: string) => [
    hi,
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: text } }],
    },
    { ...toolMessage(""), content: ["4 ", "degrees"].map((part) => ({ type: "text", text: part })) },
  ];

  test.each<[RuntimeName, object]>([
    ["Ollama", { role: "tool", content: "4 degrees", tool_call_id: "call_1", tool_name: "f" }],
    ...openAiShaped.map((name): [RuntimeName, object] => [
      name,
      { role: "tool", content: "4 degrees", tool_call_id: "call_1" },
    ]),
  ])("%s gets parts of a tool's message as %j", async (runtime, sent) => {
    const { messages } = (await on(runtime).asked({ messages: called("{}") })) as { messages: unknown[] };
    expect(messages[2]).toEqual(sent);
  });

  test.each<[RuntimeName, unknown]>([
    ["Ollama", {}],
    ...openAiShaped.map((name): [RuntimeName, unknown] => [name, "{}"]),
  ])("%s gets empty arguments as %j", async (runtime, sent) => {
    const { messages } = (await on(runtime).asked({ messages: called("") })) as { messages: unknown[] };
    expect(messages[1]).toMatchObject({ tool_calls: [{ function: { name: "f", arguments: sent } }] });
  });

  test.each(
    (Object.keys(everyRuntime) as RuntimeName[]).flatMap((name) =>
      ["[1]", '"x"', "7", "{not json"].map((text) => [name, text] as const),
    ),
  )("%s is never sent the arguments %s, which no template takes", async (runtime, text) => {
    expect(await on(runtime).refused(undefined, { messages: called(text) })).toMatchObject({
      status: 400,
      error: { param: "messages[1].tool_calls[0].function.arguments" },
    });
  });
});

describe("quirk 6: defaults of the model are not overruled", () => {
  test.each(Object.keys(everyRuntime) as RuntimeName[])(
    "%s is sent no temperature that nobody chose",
    async (runtime) => {
      const sent = JSON.stringify(await on(runtime).asked({}));
      expect(sent).not.toMatch(/temperature|top_p|num_ctx|keep_alive/);
    },
  );

  test.each<[RuntimeName, object]>([
    ["Ollama", { options: { temperature: 0, top_p: 0.5 } }],
    ...openAiShaped.map((name): [RuntimeName, object] => [name, { temperature: 0, top_p: 0.5 }]),
  ])("%s is sent those that somebody chose, as %j", async (runtime, sent) => {
    expect(await on(runtime).asked({ temperature: 0, top_p: 0.5 })).toMatchObject(sent);
  });
});

describe("quirk 8: stream_options only with stream, and whole", () => {
  test.each(openAiShaped)("%s is asked for a stream with its usage, whatever the client asks for", async (runtime) => {
    for (const request of [{}, { stream: false }, { stream: true }, { stream: true, stream_options: {} }]) {
      expect(await on(runtime).asked(request)).toMatchObject({
        stream: true,
        stream_options: { include_usage: true },
      });
    }
  });

  test("Ollama is asked for a stream, whose last line always counts", async () => {
    const sent = await on("Ollama").asked({ stream: true, stream_options: { include_usage: true } });
    expect(sent).toMatchObject({ stream: true });
    expect(sent).not.toHaveProperty("stream_options");
  });
});

function toolMessage(content: string): { role: string; content: string; tool_call_id: string } {
  return { role: "tool", content, tool_call_id: "call_1" };
}
