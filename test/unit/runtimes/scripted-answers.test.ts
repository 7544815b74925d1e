import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { chatOn, eventsOf, textOf, type ChatWish } from "../../harness/ask-runtime.ts";

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
