import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { chatOn, eventsOf, type ChatWish, offeredBy } from "../../harness/ask-runtime.ts";

const runtime = scriptedRuntime({ clock: systemClock });
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
