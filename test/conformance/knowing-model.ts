import { z } from "zod";
import type { FakeOllamaChat } from "../harness/fake-ollama.ts";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { textIn } from "../harness/asked-chat.ts";

/** What is asked of every model, in the words of the demonstration's script lines. */
export const questions = {
  text: "/script tokens=3 delay_ms=2 nonce=abc",
  thoughts: "/script tokens=3 think=2 nonce=abc",
  tool: '/script tokens=3 nonce=abc tool=get_weather args={"city":"Oslo"}',
} as const;

const thoughts = ["think-0 ", "think-1 "];
const words = ["abc-0 ", "abc-1 ", "abc-2 "];

/** What each of them says to it. */
export const said = { text: words.join(""), words, thoughts: thoughts.join(""), city: { city: "Oslo" } } as const;

const chatAsked = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
  tools: z.array(z.unknown()).optional(),
  logprobs: z.boolean().optional(),
  n: z.int().optional(),
});

/** How a model that knows the questions answers. It calls its tool once, and only talks when it has the answer. */
function answerTo(body: Readonly<Record<string, unknown>>) {
  const { messages, tools, logprobs = false, n = 1 } = chatAsked.parse(body);
  const question = textIn(messages.findLast(({ role }) => role === "user")?.content);
  return {
    thoughts: question === questions.thoughts ? thoughts : [],
    calls: question === questions.tool && tools !== undefined && messages.at(-1)?.role !== "tool",
    logprobs,
    choices: Array.from({ length: n }, (_, choice) => choice),
  };
}

const likely = (token: string) => ({ token, logprob: -0.5, bytes: [...Buffer.from(token)], top_logprobs: [] });

/** Such a model behind Ollama. */
export function answerAsOllama(chat: FakeOllamaChat): void {
  const answer = answerTo(chat.request.body);
  const line = (message: object, beside: object = {}): void =>
    chat.line({ message: { role: "assistant", content: "", ...message }, ...beside, done: false });
  for (const thinking of answer.thoughts) line({ thinking });
  for (const content of words) line({ content }, answer.logprobs ? { logprobs: [likely(content)] } : {});
  if (answer.calls) {
    const weather = { index: 0, name: "get_weather", arguments: said.city };
    line({ tool_calls: [{ id: "call_weather", function: weather }] });
  }
  chat.done();
}

/** Such a model behind a server of the OpenAI shape. */
export function answerAsOpenAi(chat: FakeOpenAiChat): void {
  const answer = answerTo(chat.request.body);
  for (const choice of answer.choices) {
    for (const text of answer.thoughts) chat.think(text, choice);
    for (const content of words) {
      if (!answer.logprobs) chat.say(content, choice);
      else chat.event(probableChunk(content, choice));
    }
    const weather = { name: "get_weather", arguments: JSON.stringify(said.city) };
    if (answer.calls) chat.call({ index: 0, id: "call_weather", type: "function", function: weather }, choice);
    if (choice > 0) chat.finish("stop", choice);
  }
  const tokens = words.length * answer.choices.length;
  const usage = { prompt_tokens: 20, completion_tokens: tokens, total_tokens: 20 + tokens };
  chat.done({ finishReason: answer.calls ? "tool_calls" : "stop", usage });
}

function probableChunk(content: string, index: number): object {
  const logprobs = { content: [likely(content)] };
  const choices = [{ index, delta: { content }, logprobs, finish_reason: null }];
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_795_200_000, model: "any", choices };
}
