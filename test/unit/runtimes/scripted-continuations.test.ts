import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { eventsOf, textOn, type TextWish } from "../../harness/ask-runtime.ts";

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
