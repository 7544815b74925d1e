import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import type { toolCall } from "#shared/protocol/job-bodies.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { AnswerHead } from "../../jobs/answer-parts.ts";
import { type ChatCall, customInput } from "../../chats/custom-tools.ts";
import type { ChatForm } from "../../chats/read-chat.ts";
import {
  ChunkStream,
  inClientWords,
  plainRendering,
  WholeCompletion,
  withCost,
} from "../../chats/render-completions.ts";
import type { ContentEvent, FoldedChoice } from "../../chats/render-completions.ts";
import type { RenderedRequest, Rendering } from "../../requests/endpoint.ts";
import type { ReadRequest } from "../../requests/read-request.ts";
import type { ChatCompletionForm } from "./chat-request.ts";

/** Returns the rendering of an answer to a chat request. */
export function renderChat(
  { form, stream }: ReadRequest<ChatCompletionForm & ChatForm>,
  request: RenderedRequest,
): Rendering {
  const { includeUsage, sentNames } = form;
  const custom = new Set(form.custom);
  const render: Rendering["render"] = (head) => {
    if (custom.size > 0 && stream) return new CustomChatChunks(head, includeUsage, custom);
    if (stream) return new ChatChunks(head, includeUsage);
    const begin = custom.size > 0 ? () => customChoice(custom) : () => new ChatChoice();
    return new WholeCompletion(head, { object: "chat.completion", begin });
  };
  return withCost(form, request, inClientWords(form, plainRendering(render, sentNames)));
}

/**
 * Renders a chat completion as a stream of `chat.completion.chunk` objects. Only the varying parts of a chunk are built
 * anew: this runs for every token.
 */
export class ChatChunks extends ChunkStream {
  /** The beginning of a chunk of the first choice, which is nearly always the only one. */
  readonly #openFirst: string;
  /** The end of a chunk without logprobs and without a finish reason. */
  readonly #closePlain: string;
  /** The beginning and the end of a chunk with a text of the first choice. */
  readonly #openText: string;
  readonly #closeText: string;
  /** The numbers of the choices that have begun. */
  readonly #begun = new Set<number>();

  constructor(head: AnswerHead, includeUsage: boolean) {
    super(head, "chat.completion.chunk", includeUsage);
    this.#openFirst = `${this.open}{"index":0,"delta":`;
    this.#closePlain = `,"logprobs":null,"finish_reason":null}${this.close}`;
    this.#openText = `${this.#openFirst}{"content":`;
    this.#closeText = `}${this.#closePlain}`;
  }

  override push(events: readonly AnswerEvent[]): Uint8Array {
    let text = "";
    for (const event of events) {
      const { kind } = event;
      if (kind === "usage" || kind === "embedding" || kind === "scores" || kind === "audio") text += this.rest(event);
      else text += this.chunk(event);
    }
    return Buffer.from(text);
  }

  /** Returns the first chunk of a choice, or an empty text when the choice has begun. */
  protected begin(choice: number): string {
    if (this.#begun.has(choice)) return "";
    this.#begun.add(choice);
    return this.delta(choice, `{"role":"assistant","content":"","refusal":null}`);
  }

  protected chunk(event: ContentEvent): string {
    const { choice = 0 } = event;
    const first = this.begin(choice);
    switch (event.kind) {
      case "text":
        if (choice === 0 && event.logprobs === undefined) {
          return first + this.#openText + JSON.stringify(event.text) + this.#closeText;
        }
        return first + this.delta(choice, `{"content":${JSON.stringify(event.text)}}`, ending(event));
      case "reasoning": {
        const text = JSON.stringify(event.text);
        return first + this.delta(choice, `{"reasoning_content":${text},"reasoning":${text}}`);
      }
      case "tool-call-start": {
        const { index, id, name } = event;
        const call = { index, id, type: "function", function: { name, arguments: "" } };
        return first + this.delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "tool-call-delta": {
        const call = { index: event.index, function: { arguments: event.arguments } };
        return first + this.delta(choice, JSON.stringify({ tool_calls: [call] }));
      }
      case "finish":
        return first + this.delta(choice, "{}", `,"logprobs":null,"finish_reason":"${event.reason}"}`);
    }
  }

  /** Returns a chunk with this delta. `rest` replaces the fields after the delta. */
  protected delta(choice: number, delta: string, rest?: string): string {
    const open = choice === 0 ? this.#openFirst : `${this.open}{"index":${choice},"delta":`;
    return rest === undefined ? open + delta + this.#closePlain : open + delta + rest + this.close;
  }
}

function ending({ logprobs }: Extract<AnswerEvent, { kind: "text" }>): string | undefined {
  if (logprobs === undefined) return undefined;
  return `,"logprobs":${JSON.stringify({ content: logprobs, refusal: null })},"finish_reason":null}`;
}

/** The characters that a tool call counts for besides its name, id and arguments: the memory and the JSON around them. */
const callCharacters = 512;

export class ChatChoice implements FoldedChoice {
  #calls: Map<number, z.infer<typeof toolCall>> | undefined;
  #text = "";
  #reasoning = "";
  #logprobs: TokenLogprobs | undefined;
  #reason: FinishReason = "stop";

  fold(event: ContentEvent): number {
    switch (event.kind) {
      case "text":
        this.#text += event.text;
        return event.text.length + this.#join(event.logprobs);
      case "reasoning":
        this.#reasoning += event.text;
        return event.text.length;
      case "tool-call-start":
        this.#calls ??= new Map();
        this.#calls.set(event.index, {
          id: event.id ?? "",
          type: "function",
          function: { name: event.name, arguments: "" },
        });
        return callCharacters + event.name.length + (event.id?.length ?? 0);
      case "tool-call-delta": {
        const call = this.#calls?.get(event.index);
        if (call) call.function.arguments += event.arguments;
        return event.arguments.length;
      }
      case "finish":
        this.#reason = event.reason;
        return 0;
    }
  }

  /**
   * Adds logprobs and returns their length as JSON: they are many times as long as their text, and count towards the
   * limit.
   */
  #join(logprobs: TokenLogprobs | undefined): number {
    if (logprobs === undefined) return 0;
    this.#logprobs ??= [];
    for (const token of logprobs) this.#logprobs.push(token);
    return JSON.stringify(logprobs).length;
  }

  json(index: number) {
    const calls = this.#calls && [...this.#calls].toSorted(([a], [b]) => a - b).map(([, call]) => call);
    const reasoning = this.#reasoning === "" ? undefined : this.#reasoning;
    const message = {
      role: "assistant" as const,
      content: this.#text === "" && calls !== undefined ? null : this.#text,
      refusal: null,
      reasoning_content: reasoning,
      reasoning,
      tool_calls: calls,
    };
    const logprobs = this.#logprobs === undefined ? null : { content: this.#logprobs, refusal: null };
    return { index, message, logprobs, finish_reason: this.#reason };
  }
}

/** Begins a choice of a whole chat completion, in which the calls of these custom tools are custom calls. */
function customChoice(names: ReadonlySet<string>): FoldedChoice {
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
class CustomChatChunks extends ChatChunks {
  readonly #names: ReadonlySet<string>;
  /** The JSON of the calls so far, by choice and index. */
  readonly #given = new Map<number, Map<number, string>>();
  #characters = 0;

  constructor(head: AnswerHead, includeUsage: boolean, names: ReadonlySet<string>) {
    super(head, includeUsage);
    this.#names = names;
  }

  protected override chunk(event: ContentEvent): string {
    const { choice = 0 } = event;
    const calls = this.#given.getOrInsertComputed(choice, () => new Map());
    if (event.kind === "tool-call-start" && this.#names.has(event.name)) {
      const { index, id, name } = event;
      calls.set(index, "");
      return this.begin(choice) + this.#call(choice, { index, id, type: "custom", custom: { name, input: "" } });
    }
    if (event.kind === "tool-call-delta" && calls.has(event.index)) {
      this.#characters += event.arguments.length;
      if (this.#characters > inputCharactersMax) throw new Fault("invalid_value", { message: tooLong });
      calls.set(event.index, calls.get(event.index) + event.arguments);
      return "";
    }
    const ended = event.kind === "finish" ? [...calls] : [];
    const inputs = ended.map(([index, given]) => this.#call(choice, { index, custom: { input: customInput(given) } }));
    return inputs.join("") + super.chunk(event);
  }

  #call(choice: number, call: object): string {
    return this.delta(choice, JSON.stringify({ tool_calls: [call] }));
  }
}
