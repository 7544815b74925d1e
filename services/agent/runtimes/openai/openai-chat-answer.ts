import type { AnswerEvent, TokenLogprobs } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { chatChunk, type ChunkChoice } from "./openai-chat-chunk.ts";
import { finishReasonOf, senseless, tellsNoLogprobs, toldBy } from "./openai-event.ts";
import { logprobsIn } from "./openai-logprobs.ts";
import { OpenAiToolCalls } from "./openai-tool-calls.ts";
import { usageEvent } from "./openai-usage.ts";
import type { SentEvent } from "../server-sent-events.ts";

export interface AnswerOptions {
  /** How many answers were asked for. */
  readonly choices: number;
  readonly parallelToolCalls: boolean;
  /** How many tokens were asked for in place of each: some servers tell more. */
  readonly topLogprobs: number;
  /** Whether an answer that tells no likelihoods is none that was asked for. */
  readonly needsLogprobs: boolean;
  /** Whether the server drops tool calls that it cannot read. */
  readonly dropsUnreadableCalls: boolean;
}

/** Turns the events of one answer of `/v1/chat/completions` into answer events, whatever server they come from. */
export class OpenAiChatAnswer {
  readonly #options: AnswerOptions;
  readonly #calls = new Map<number, OpenAiToolCalls>();
  readonly #finished = new Set<number>();
  /** Choices that were ended with a reason that is empty, as some servers also write on every chunk. */
  readonly #ended = new Set<number>();
  #said = false;
  #textSaid = false;
  #over = false;
  #promptTokens: number | undefined;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  /** Whether anything of the answer has come yet. */
  get said(): boolean {
    return this.#said;
  }

  /** How long the prompt was, once the server has told. */
  get promptTokens(): number | undefined {
    return this.#promptTokens;
  }

  /** Whether the server says that there will be no more. That is no proof of success. */
  get over(): boolean {
    return this.#over;
  }

  /** Whether every answer that was asked for is complete. A stream that ends before that has failed. */
  get done(): boolean {
    return this.#finished.size >= this.#options.choices;
  }

  *events(event: SentEvent): Generator<AnswerEvent> {
    if (this.#over) return;
    const told = toldBy(event, { said: this.#said });
    if (told.kind === "end") yield* this.#end();
    if (told.kind !== "chunk") return;
    const parsed = chatChunk.safeParse(told.value);
    if (!parsed.success) throw senseless(parsed.error.message);
    for (const choice of parsed.data.choices ?? []) yield* this.#choice(choice);
    if (parsed.data.usage) {
      this.#promptTokens = parsed.data.usage.prompt_tokens;
      yield usageEvent(parsed.data.usage);
    }
  }

  *#choice(told: ChunkChoice): Generator<AnswerEvent> {
    const index = told.index ?? 0;
    const own = index === 0 ? {} : { choice: index };
    const reasoning = told.delta?.reasoning_content || told.delta?.reasoning;
    const text = told.delta?.content;
    if (reasoning) yield { kind: "reasoning", ...own, text: reasoning };
    if (text) yield { kind: "text", ...own, text, ...this.#logprobs(told) };
    for (const piece of told.delta?.tool_calls ?? []) yield* this.#callsOf(index).push(piece);
    this.#textSaid ||= Boolean(text);
    this.#said ||= Boolean(reasoning || text || told.delta?.tool_calls?.length);
    if (told.finish_reason === "") this.#ended.add(index);
    else if (told.finish_reason) yield* this.#finish(index, told.finish_reason);
  }

  *#finish(index: number, told: string): Generator<AnswerEvent> {
    if (this.#finished.has(index)) return;
    const reason = finishReasonOf(told, { said: this.#said });
    const calls = this.#callsOf(index);
    if (reason === "tool_calls" && !calls.seen && this.#options.dropsUnreadableCalls) {
      throw new Fault("upstream_error", {
        message: "The model called a tool in a way that cannot be read.",
        internal: "the runtime dropped the call",
      });
    }
    yield* calls.end({ cutOff: reason === "length" });
    this.#finished.add(index);
    yield { kind: "finish", ...(index > 0 && { choice: index }), reason };
  }

  /** The end of the stream makes an empty reason the one that was meant. */
  *#end(): Generator<AnswerEvent> {
    for (const index of this.#ended) yield* this.#finish(index, "stop");
    this.#over = true;
  }

  #callsOf(index: number): OpenAiToolCalls {
    const known = this.#calls.get(index);
    if (known !== undefined) return known;
    if (index >= this.#options.choices) throw senseless(`choice ${index} of ${this.#options.choices}`);
    const calls = new OpenAiToolCalls({ callsMax: this.#options.parallelToolCalls ? Infinity : 1, choice: index });
    this.#calls.set(index, calls);
    return calls;
  }

  #logprobs(told: ChunkChoice): { logprobs?: TokenLogprobs } {
    const logprobs = logprobsIn(told.logprobs?.content, this.#options.topLogprobs);
    if (logprobs !== undefined) return { logprobs };
    if (!this.#options.needsLogprobs || this.#textSaid) return {};
    throw tellsNoLogprobs();
  }
}
