import { type ChatResponse, type Message, Ollama } from "ollama";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { frontedRuntimes, type Fronted } from "./fronted-runtimes.ts";
import { questions, said } from "./knowing-model.ts";

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

describe.each(frontedRuntimes)("Ollama's package, through $name,", ({ start, embeds, knowsLogprobs, details }) => {
  let fronted: Fronted;
  let client: Ollama;
  beforeAll(async () => {
    fronted = await start();
    const { baseUrl, key } = fronted.endpoint;
    client = new Ollama({ host: new URL(baseUrl).origin, headers: { Authorization: `Bearer ${key}` } });
  });
  afterAll(() => fronted[Symbol.asyncDispose]());
  const asking = (content: string) => ({ model: fronted.chatModel, messages: [{ role: "user", content }] });

  test("lists the models, each with a tag, and shows what each can do", async () => {
    const { models } = await client.list();
    const tagged = fronted.chatModel.includes(":") ? fronted.chatModel : `${fronted.chatModel}:latest`;
    expect(models.find(({ name }) => name === tagged)).toMatchObject({ digest: expect.stringMatching(/^\w{64}$/) });
    const shown = await client.show({ model: tagged });
    const { capabilities, model_info: info } = shown as unknown as Record<string, unknown>;
    expect(capabilities).toEqual(expect.arrayContaining(["completion", "tools"]));
    const listed = (await (await fronted.endpoint.get(`/models/${fronted.chatModel}`)).json()) as object;
    const window = Reflect.get(Object(info), `${Reflect.get(Object(info), "general.architecture")}.context_length`);
    expect(listed).toMatchObject({ context_window: window });
    const loaded = await client.ps();
    for (const { name } of loaded.models) expect(models.map((model) => model.name)).toContain(name);
  });

  test("sees the weights of a model where its server reports them, and empty texts where it does not", async () => {
    const expected = details ?? { family: "", parameter_size: "", quantization_level: "" };
    expect(await client.show({ model: fronted.chatModel })).toMatchObject({ details: expected });
    const { models } = await client.list();
    expect(models.find(({ name }) => name.startsWith(fronted.chatModel))).toMatchObject({ details: expected });
    const { data } = (await (await fronted.endpoint.get("/models")).json()) as { data: object[] };
    for (const model of data) expect(model).not.toHaveProperty("details");
    expect(await (await fronted.endpoint.get(`/models/${fronted.chatModel}`)).json()).not.toHaveProperty("details");
  });

  test("chats, whole and in lines, and hears counts and durations at the end", async () => {
    const whole = await client.chat(asking(questions.text));
    expect(whole).toMatchObject({ model: fronted.chatModel, message: { role: "assistant", content: said.text } });
    expectLast(whole);
    const lines = await Array.fromAsync(await client.chat({ ...asking(questions.text), stream: true }));
    expect(lines.map(({ message }) => message.content).join("")).toBe(said.text);
    expect(lines.length).toBeGreaterThan(2);
    expect(lines.slice(0, -1).every(({ done }) => !done)).toBe(true);
    expectLast(lines.at(-1));
  });

  test("hears the thoughts apart from the text, and switches thinking off", async () => {
    const { message } = await client.chat({ ...asking(questions.thoughts), think: true });
    expect(message).toEqual({ role: "assistant", content: said.text, thinking: said.thoughts });
    const lines = await Array.fromAsync(await client.chat({ ...asking(questions.thoughts), stream: true }));
    expect(lines.map((line) => line.message.thinking ?? "").join("")).toBe(said.thoughts);
    expect((await client.chat({ ...asking(questions.text), think: false })).message.content).toBe(said.text);
  });

  test.each([false, true])("runs a tool, with stream %s, and comes to the end of its loop", async (streamed) => {
    const messages: Message[] = [{ role: "user", content: questions.tool }];
    const ask = async (): Promise<Message[]> => {
      const request = { model: fronted.chatModel, messages, tools: [weather] };
      if (!streamed) return [(await client.chat(request)).message];
      return (await Array.fromAsync(await client.chat({ ...request, stream: true }))).map(({ message }) => message);
    };
    const first = await ask();
    const calls = first.flatMap(({ tool_calls: made = [] }) => made);
    expect(calls.map((call) => call.function)).toMatchObject([{ name: "get_weather", arguments: said.city }]);
    // The package's own type of a call has no id, and clients that follow it send none back.
    const made = calls.map(({ function: called }) => ({ function: called }));
    const content = first.map((piece) => piece.content).join("");
    messages.push({ role: "assistant", content, tool_calls: made });
    messages.push({ role: "tool", content: "7 degrees", tool_name: "get_weather" });
    const last = await ask();
    expect(last.map((piece) => piece.content).join("")).toBe(said.text);
  });

  test("answers a prompt, whole and in lines", async () => {
    const request = { model: fronted.chatModel, prompt: questions.text, system: "Be kind." };
    const whole = await client.generate(request);
    expect(whole.response).toBe(said.text);
    expectLast(whole);
    const lines = await Array.fromAsync(await client.generate({ ...request, stream: true }));
    expect(lines.map(({ response }) => response).join("")).toBe(said.text);
    expectLast(lines.at(-1));
  });

  test("loads a model by an empty prompt, which costs nothing", async () => {
    const { done_reason: reason, response } = await client.generate({ model: fronted.chatModel, prompt: "" });
    expect([reason, response]).toEqual(["load", ""]);
  });

  if (knowsLogprobs)
    test("gets the logprobs of every token, whole and in lines", async () => {
      const request = { ...asking(questions.text), logprobs: true };
      const whole = await client.chat(request);
      const lines = await Array.fromAsync(await client.chat({ ...request, stream: true }));
      for (const answer of [[whole], lines]) {
        const tokens = answer.flatMap(({ logprobs = [] }) => logprobs);
        expect(tokens.map(({ token }) => token).join("")).toBe(said.text);
      }
    });

  if (embeds)
    test("gets vectors, each in its place, by both endpoints", async () => {
      const model = fronted.embedModel;
      const { embeddings, prompt_eval_count: tokens } = await client.embed({ model, input: ["one", "two", "one"] });
      expect(embeddings).toHaveLength(3);
      expect(embeddings[2]).toEqual(embeddings[0]);
      expect(embeddings[1]).not.toEqual(embeddings[0]);
      expect(tokens).toBeGreaterThan(0);
      expect((await client.embeddings({ model, prompt: "two" })).embedding).toEqual(embeddings[1]);
      expect((await client.embed({ model, input: [] })).embeddings).toEqual([]);
    });
});

type Last = Omit<ChatResponse, "message" | "created_at" | "model">;

function expectLast(last: Last | undefined): void {
  expect(last).toMatchObject({ done: true, done_reason: "stop", eval_count: 3 });
  const { total_duration: total = 0, prompt_eval_duration: prompt = 0, eval_duration: answer = 0 } = last ?? {};
  expect(total).toBeGreaterThan(0);
  expect(prompt + answer).toBeLessThanOrEqual(total);
  expect(last?.prompt_eval_count).toBeGreaterThan(0);
}
