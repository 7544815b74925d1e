import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { chatOn, eventsOf, textOf, textOn, type TextWish } from "../../harness/ask-runtime.ts";

const runtime = scriptedRuntime({ clock: systemClock });

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

test("a text on the scripted runtime is continued by the greeting otherwise", async () => {
  const greeting = textOf(await eventsOf(chatOn(runtime, { model: "scripted:plain" })));
  expect(textOf(await continued({ prompt: "Once upon a time" }))).toBe(greeting);
});

test("a text on the scripted runtime goes on where an answer that was begun broke off", async () => {
  const greeting = textOf(await continued({ prompt: "Once upon a time " }));
  const begun = greeting.slice(0, greeting.indexOf("reached"));
  expect(begun + textOf(await continued({ prompt: `Once upon a time ${begun}` }))).toBe(greeting);
  expect(textOf(await continued({ prompt: "/script tokens=3 nonce=abc\nabc-0 abc-1 " }))).toBe("abc-2 ");
});

test("a text on the scripted runtime ends at its limit, or exactly before a stop string", async () => {
  const prompt = "/script tokens=5 nonce=a";
  expect(await continued({ prompt, max_tokens: 2 })).toContainEqual({ kind: "finish", reason: "length" });
  const stopped = await continued({ prompt, stop: ["1 a-2"] });
  expect(textOf(stopped)).toBe("a-0 a-");
  expect(stopped).toContainEqual({ kind: "finish", reason: "stop", stop: "1 a-2" });
});

test("a text on the scripted runtime fails as its script line asks", async () => {
  await expect(continued({ prompt: "/script tokens=3 fail_at=1" })).rejects.toMatchObject({ code: "upstream_error" });
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

test("a text on the scripted runtime is refused for a model that there is not", async () => {
  await expect(continued({ model: "other" })).rejects.toMatchObject({ code: "model_not_found", param: "model" });
});
