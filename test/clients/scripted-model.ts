import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import type { ToolCall } from "./coding-clients.ts";

/** The next answer of a scripted model: a call, or words. */
export type ScriptedStep = ToolCall | { readonly says: string };

/** The answer to requests beside the task, such as for a title of the conversation. */
const aside = "Counting words";
/** Thoughts of the model before each step. Clients send it back in their own ways. */
export const thought = "The next step is clear.";
const charactersOfToken = 4;

/**
 * Answers the requests of one conversation, each with the step that comes next. A conversation has as many steps behind it
 * as it has messages of the assistant. A request without tools is not part of the task.
 */
export function followScript(steps: readonly ScriptedStep[]): (chat: FakeOpenAiChat) => void {
  return (chat) => {
    const { messages, tools } = chat.request.body as { messages: { role: string }[]; tools?: unknown[] };
    const behind = messages.filter(({ role }) => role === "assistant").length;
    const step = tools === undefined ? { says: aside } : (steps[behind] ?? { says: "There is nothing left to do." });
    const said = "says" in step ? step.says : JSON.stringify(step.args);
    if (tools !== undefined) chat.think(thought);
    if ("says" in step) {
      for (const word of step.says.split(/(?<= )/)) chat.say(word);
    } else {
      const called = { name: step.tool, arguments: said };
      chat.call({ index: 0, id: `call_${behind + 1}`, type: "function", function: called });
    }
    const prompt = Math.ceil(JSON.stringify([messages, tools]).length / charactersOfToken);
    const completion = Math.ceil(said.length / charactersOfToken);
    const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
    chat.done({ finishReason: "says" in step ? "stop" : "tool_calls", usage });
  };
}

/** All that a script says and thinks, and all arguments of its calls. */
export function textsOf(steps: readonly ScriptedStep[]): string[] {
  const said = steps.flatMap((step) => {
    const texts = "says" in step ? [step.says] : Object.values(step.args);
    return texts.filter((text) => typeof text === "string");
  });
  return [thought, ...said];
}
