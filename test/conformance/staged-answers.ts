import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";

/** The cities that `callTwice` asks for. */
export const cities = ["Oslo", "Rome"];

export function sayHello(chat: FakeOpenAiChat): void {
  chat.say("Hello ");
  chat.say("there.");
  chat.done();
}

/** Calls `get_weather` for two cities at once, in two pieces each, and only talks when it has been answered. */
export function callTwice(chat: FakeOpenAiChat): void {
  const { messages } = chat.request.body as { messages: { role: string }[] };
  if (messages.at(-1)?.role === "tool") return sayHello(chat);
  for (const [index, city] of cities.entries()) {
    const called = { name: "get_weather", arguments: '{"city":' };
    chat.call({ index, id: `call_${city}`, type: "function", function: called });
    chat.call({ index, function: { arguments: `${JSON.stringify(city)}}` } });
  }
  chat.done({ finishReason: "tool_calls" });
}

/** How likely each token was, with one other that was less so. */
export const likely = {
  token: "Hello",
  logprob: -0.5,
  bytes: [72, 101, 108, 108, 111],
  top_logprobs: [{ token: "Hi", logprob: -1.5, bytes: [72, 105] }],
};

export function sayLikely(chat: FakeOpenAiChat, finishReason = "stop"): void {
  chat.event({ choices: [{ index: 0, delta: { content: likely.token }, logprobs: { content: [likely] } }] });
  chat.done({ finishReason });
}

export function failBefore(chat: FakeOpenAiChat): void {
  chat.refuse(500, "CUDA out of memory");
}

export function failInTheMiddle(chat: FakeOpenAiChat): void {
  chat.say("Hello ");
  chat.event({ error: { message: "CUDA out of memory", type: "InternalServerError", code: 500 } });
  chat.end();
}
