import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import { refuseIncapable } from "../../../services/agent/runtimes/refuse-unsupported.ts";

const nothing = { completion: false, vision: false, embedding: false, tools: false, thinking: false };
const chats = { ...nothing, completion: true };
const url = "data:image/png;base64,iVBORw0=";
const image = [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }];
const tools = [{ type: "function", function: { name: "look" } }];

function refusalOf(fields: Record<string, unknown>, capabilities: typeof nothing): Fault | undefined {
  const body = chatBody.parse({ messages: [{ role: "user", content: "Hello" }], ...fields });
  try {
    refuseIncapable({ model: "m", capabilities, body });
  } catch (error) {
    return Fault.from(error);
  }
  return undefined;
}

test.each([
  ["any chat", {}, { ...nothing, embedding: true }, "unsupported_value", "model"],
  ["tools", { tools }, chats, "model_does_not_support_tools", "tools"],
  ["an image", { messages: image }, chats, "unsupported_value", "messages[0].content[0]"],
  ["an effort of thinking", { reasoning_effort: "low" }, chats, "unsupported_parameter", "reasoning_effort"],
])("what a model cannot do is refused whatever its runtime is: %s", (_, fields, capabilities, code, param) => {
  expect(refusalOf(fields, capabilities)).toMatchObject({ code, param });
});

test.each([
  ["a plain chat", {}, chats],
  ["no thinking of a model that cannot", { reasoning_effort: "none" }, chats],
  ["tools of a model that can", { tools }, { ...chats, tools: true }],
  ["an image for a model that sees", { messages: image }, { ...chats, vision: true }],
])("what a model can do is let through: %s", (_, fields, capabilities) => {
  expect(refusalOf(fields, capabilities)).toBeUndefined();
});
