import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerHead } from "../../jobs/answer-parts.ts";
import type { ContentEvent, FoldedChoice } from "../../chats/render-completions.ts";
import { type ChatCall, customInput } from "../../chats/custom-tools.ts";
import { ChatChoice, ChatChunks } from "./render-chat.ts";

/** Begins a choice of a whole chat completion, in which the calls of these custom tools are custom calls. */
export function customChoice(names: ReadonlySet<string>): FoldedChoice {
  const choice = new ChatChoice();
  const called = (call: ChatCall): ChatCall => {
    if (call.type === "custom" || !names.has(call.function.name)) return call;
    const { name, arguments: given } = call.function;
    return { id: call.id, type: "custom", custom: { name, input: customInput(given) } };
  };
  return {
    fold: (event) => choice.fold(event),
    json(index) {
      const { message, ...rest } = choice.json(index);
      return { ...rest, message: { ...message, tool_calls: message.tool_calls?.map(called) } };
    },
  };
}

const inputCharactersMax = limits.wholeAnswerCharactersMax;
const tooLong = `The texts for custom tools are longer than ${inputCharactersMax} characters (wholeAnswerCharactersMax).`;

/** Streams a chat completion in which the calls of these custom tools get their text in one piece, at the end. */
export class CustomChatChunks extends ChatChunks {
  readonly #names: ReadonlySet<string>;
  /** The JSON of the calls so far, by choice and index. */
  readonly #given = new Map<number, Map<number, string>>();
  #characters = 0;

  constructor(head: AnswerHead, includeUsage: boolean, names: ReadonlySet<string>) {
    super(head, includeUsage);
    this.#names = names;
  }

  protected override following(choice: number, event: ContentEvent): string {
    const calls = this.#given.getOrInsertComputed(choice, () => new Map());
    if (event.kind === "tool-call-start" && this.#names.has(event.name)) {
      const { index, id, name } = event;
      calls.set(index, "");
      return this.#call(choice, { index, id, type: "custom", custom: { name, input: "" } });
    }
    if (event.kind === "tool-call-delta" && calls.has(event.index)) {
      this.#characters += event.arguments.length;
      if (this.#characters > inputCharactersMax) throw new Fault("invalid_value", { message: tooLong });
      calls.set(event.index, calls.get(event.index) + event.arguments);
      return "";
    }
    const ended = event.kind === "finish" ? [...calls] : [];
    const inputs = ended.map(([index, given]) => this.#call(choice, { index, custom: { input: customInput(given) } }));
    return inputs.join("") + super.following(choice, event);
  }

  #call(choice: number, call: object): string {
    return this.delta(choice, JSON.stringify({ tool_calls: [call] }));
  }
}
