import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import {
  chatOn,
  type ChatWish,
  eventsOf,
  offeredBy,
  textOf,
  textOn,
  type TextWish,
} from "../../harness/ask-runtime.ts";

const runtime = scriptedRuntime({ clock: systemClock });

function answer(wish: Partial<ChatWish>) {
  return eventsOf(chatOn(runtime, { model: "scripted", ...wish }));
}

function tool(name: string) {
  return { type: "function" as const, function: { name } };
}

test("the scripted runtime greets as a demonstration and says how to get a real model, in several pieces", async () => {
  const events = await answer({});
  expect(textOf(events)).toMatch(/demonstration.*install Ollama/);
  expect(events.filter(({ kind }) => kind === "text").length).toBeGreaterThan(5);
  expect(events.at(-2)).toEqual({ kind: "finish", reason: "stop" });
});

test("the scripted runtime says the tokens of its script exactly, after its thoughts, and counts them", async () => {
  const events = await answer({ says: "/script tokens=3 nonce=abc think=2" });
  expect(events).toEqual([
    { kind: "reasoning", text: "think-0 " },
    { kind: "reasoning", text: "think-1 " },
    { kind: "text", text: "abc-0 " },
    { kind: "text", text: "abc-1 " },
    { kind: "text", text: "abc-2 " },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 4, completionTokens: 5, reasoningTokens: 2 },
  ]);
});

test("the scripted runtime takes the script from the user's own part among those that a coding agent puts beside it", async () => {
  const parts = ["<reminder>Be brief.</reminder>", "script tokens=1 nonce=own", "<context>x</context>"];
  const content = parts.map((text) => ({ type: "text" as const, text }));
  expect(textOf(await answer({ messages: [{ role: "user", content }] }))).toBe("own-0 ");
});

test("the scripted runtime is as long as a benchmark wants it, by `ignore_eos` with `max_tokens` and by `min_tokens`", async () => {
  const fixed = await answer({ ignore_eos: true, max_tokens: 200 });
  expect(fixed.at(-1)).toMatchObject({ kind: "usage", completionTokens: 200 });
  expect(fixed).toContainEqual({ kind: "finish", reason: "length" });
  const scripted = await answer({ says: "/script tokens=2", min_tokens: 7, max_tokens: 9 });
  expect(scripted.at(-1)).toMatchObject({ kind: "usage", completionTokens: 7 });
  expect(scripted).toContainEqual({ kind: "finish", reason: "stop" });
});

test("the scripted runtime calls the tool of its script after the text", async () => {
  const says = '/script tokens=0 tool=look args={"at":"it"}';
  expect(await answer({ says, tools: [tool("look")] })).toEqual([
    { kind: "tool-call-start", index: 0, name: "look" },
    { kind: "tool-call-delta", index: 0, arguments: '{"at":"it"}' },
    { kind: "finish", reason: "tool_calls" },
    { kind: "usage", promptTokens: 4, completionTokens: 0 },
  ]);
});

test.each([
  ["the first one when a call is required", "required" as const, "first"],
  ["the named one", { type: "function" as const, function: { name: "second" } }, "second"],
])("the scripted runtime calls a tool without a script when tool_choice demands it: %s", async (_, choice, name) => {
  const events = await answer({ tools: [tool("first"), tool("second")], tool_choice: choice });
  expect(events[0]).toEqual({ kind: "tool-call-start", index: 0, name });
});

function continued(wish: Partial<TextWish>) {
  return eventsOf(textOn(runtime, { model: "scripted:plain", ...wish }));
}

test("a text on the scripted runtime is continued by the script line that it begins with, and counted by words", async () => {
  expect(await continued({ prompt: "/script tokens=2 nonce=abc\nOnce upon a time" })).toEqual([
    { kind: "text", text: "abc-0 " },
    { kind: "text", text: "abc-1 " },
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens: 7, completionTokens: 2 },
  ]);
});

test.each([
  ["suffix", { suffix: "the end" }],
  ["logprobs", { logprobs: 0 }],
  ["logit_bias", { logit_bias: { "5": 1 } }],
])("a text on the scripted runtime is refused with what cannot be honoured: %s", async (param, wish) => {
  await expect(continued(wish)).rejects.toMatchObject({ code: "unsupported_parameter", param });
});

test.each(["/script think=1", "/script tool=look", "/script tokens=x", "/script toke=1"])(
  "a text on the scripted runtime is refused with a script line that cannot be: %s",
  async (prompt) => {
    await expect(continued({ prompt })).rejects.toMatchObject({ code: "invalid_value", param: "prompt" });
  },
);

const { signal } = new AbortController();

test("the demonstration models run on MLX where the name says so, and nowhere else", async () => {
  const models = await offeredBy(scriptedRuntime({ clock: systemClock }));
  const onMlx = models.filter((model) => model.runtime_profile === "apple-mlx" || "apple_mlx" in model);
  expect(onMlx).toMatchObject([{ id: "scripted:mlx", runtime_profile: "apple-mlx", apple_mlx: true }]);
});

test("the demonstration models are offered as chosen", async () => {
  const two = scriptedRuntime({ clock: systemClock, models: ["scripted:embed", "scripted"] });
  expect((await two.catalogue(signal)).map(({ id }) => id)).toEqual(["scripted", "scripted:embed"]);
});

test("the demonstration models cannot be chosen by a name that none of them has", () => {
  expect(() => scriptedRuntime({ clock: systemClock, models: ["scripted", "llama"] })).toThrow(
    'There is no demonstration model "llama"; choose from scripted, scripted:plain, scripted:vision',
  );
});

const tools = [{ type: "function" as const, function: { name: "look" } }];

function refusalOf(wish: Partial<ChatWish>) {
  return expect(eventsOf(chatOf({ model: "scripted", ...wish }))).rejects;
}

/** As an agent asks, which knows what the model can do. */
async function* chatOf(wish: ChatWish) {
  const model = (await offeredBy(runtime)).find(({ id }) => id === wish.model);
  yield* chatOn(runtime, wish, model && { capabilities: model.capabilities });
}

test.each([
  ["n", { n: 2 }],
  ["logprobs", { logprobs: true }],
  ["top_logprobs", { top_logprobs: 3 }],
  ["logit_bias", { logit_bias: { "50256": -100 } }],
  ["response_format", { response_format: { type: "json_object" as const } }],
])("the scripted runtime refuses what it cannot honour, rather than drop it: %s", async (param, fields) => {
  await refusalOf(fields).toMatchObject({ code: "unsupported_parameter", param });
});

test("the scripted runtime refuses nothing that asks for no more than every answer is anyway", async () => {
  const neutral = { n: 1, logprobs: false, logit_bias: {}, response_format: { type: "text" as const } };
  const settings = { temperature: 0.5, top_p: 0.9, seed: 7, presence_penalty: 1, frequency_penalty: 1 };
  const wish = { model: "scripted", says: "/script tokens=1", ...neutral, ...settings, parallel_tool_calls: true };
  expect(await eventsOf(chatOn(runtime, wish))).toHaveLength(3);
});

test.each([
  ["one that the request does not have", { says: "/script tool=other", tools }, "messages"],
  ["one that tool_choice forbids", { says: "/script tool=look", tools, tool_choice: "none" as const }, "messages"],
  ["a demand for a tool without any", { tool_choice: "required" as const }, "tool_choice"],
])("the scripted runtime refuses to call a tool that may not be called: %s", async (_, wish, param) => {
  await refusalOf(wish).toMatchObject({ code: "invalid_value", param });
});
