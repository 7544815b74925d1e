import type { AnswerEvent, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { SentEvent } from "../read-stream.ts";
import {
  finishReasonOf,
  interrupted,
  invalidEvent,
  logprobsIn,
  logprobsUnsupported,
  pickChunk,
  readEvent,
  type ChunkChoice,
} from "./openai-chunk.ts";
import { OpenAiToolCalls } from "./openai-tool-calls.ts";

export interface OpenAiAnswerOptions {
  /** The number of answers in the request (`n`). */
  readonly choices: number;
  readonly parallelToolCalls: boolean;
  /** The most alternatives to report for each token: some servers send more. Undefined leaves logprobs out. */
  readonly topLogprobs: number | undefined;
  /** True if an answer without logprobs is refused. */
  readonly needsLogprobs: boolean;
  /** True if the server drops tool calls that it cannot parse. */
  readonly dropsUnreadableCalls: boolean;
  /** True if the server silently removes reasoning and tool calls from the text. */
  readonly leavesOutMarked?: boolean | undefined;
  /** True if `[DONE]` without a finish reason means that the server left the answer for another request. */
  readonly interrupts?: boolean | undefined;
}

/** Turns the events of one answer of `/v1/chat/completions` or `/v1/completions` into answer events, for any server. */
export class OpenAiAnswer {
  readonly #options: OpenAiAnswerOptions;
  /** The tool calls by choice, for choices that call tools. */
  readonly #calls = new Map<number, OpenAiToolCalls>();
  readonly #begun = new Set<number>();
  readonly #finished = new Set<number>();
  /** Choices that got an empty finish reason. Some servers also write an empty reason on every chunk. */
  readonly #ended = new Set<number>();
  #endedBare = false;
  #hasOutput = false;
  #hasText = false;
  #isOver = false;
  #promptTokens: number | undefined;

  constructor(options: OpenAiAnswerOptions) {
    this.#options = options;
  }

  /** True if any part of the answer has come. */
  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** The length of the prompt, once the server has reported it. */
  get promptTokens(): number | undefined {
    return this.#promptTokens;
  }

  /** True if the server reported the end of the stream. This does not prove success. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True if `[DONE]` came for a choice without a finish reason, and counted as success. */
  get endedBare(): boolean {
    return this.#endedBare;
  }

  /** True if every requested answer is complete. A stream that ends before that has failed. */
  get isComplete(): boolean {
    return this.#finished.size >= this.#options.choices;
  }

  /** Adds the answer events of this event. Answer events before a fault in it are still added. */
  read(event: SentEvent, events: AnswerEvent[]): void {
    if (this.#isOver) return;
    const result = readEvent(event, { hasOutput: this.#hasOutput });
    if (result.kind === "end") this.#end(events);
    if (result.kind !== "chunk") return;
    const { choices, usage } = pickChunk(result.value);
    for (const choice of choices) this.#readChoice(choice, events);
    if (usage === undefined) return;
    this.#promptTokens = usage.promptTokens;
    events.push(usage);
  }

  #readChoice({ index, text, reasoning, calls, finishReason, logprobs }: ChunkChoice, events: AnswerEvent[]): void {
    const { choices, leavesOutMarked = false } = this.#options;
    if (index >= choices) throw invalidEvent(`choice ${index} of ${choices}`);
    this.#begun.add(index);
    const choice = index === 0 ? undefined : index;
    if (reasoning) events.push({ kind: "reasoning", choice, text: reasoning });
    if (text) events.push({ kind: "text", choice, text, logprobs: this.#logprobs(logprobs) });
    for (const piece of calls) for (const event of this.#callsOf(index).push(piece)) events.push(event);
    this.#hasText ||= text !== undefined;
    this.#hasOutput ||= text !== undefined || reasoning !== undefined || calls.length > 0;
    if (leavesOutMarked && ((!text && !finishReason) || finishReason === "tool_calls")) throw markedLeftOut();
    if (finishReason === "") this.#ended.add(index);
    else if (finishReason !== undefined) this.#finish(index, finishReason, events);
  }

  #finish(index: number, serverReason: string, events: AnswerEvent[]): void {
    if (this.#finished.has(index)) return;
    const reason = finishReasonOf(serverReason, { hasOutput: this.#hasOutput });
    const calls = this.#calls.get(index);
    if (reason === "tool_calls" && calls === undefined && this.#options.dropsUnreadableCalls) {
      throw new Fault("upstream_error", {
        message: "The model's tool call could not be parsed.",
        internal: "the runtime dropped the call",
      });
    }
    if (calls !== undefined) for (const event of calls.end({ cutOff: reason === "length" })) events.push(event);
    this.#finished.add(index);
    events.push(index === 0 ? { kind: "finish", reason } : { kind: "finish", choice: index, reason });
  }

  /**
   * Ends the answer at `[DONE]`, which is success: a choice without a finish reason, or with an empty one, has stopped.
   */
  #end(events: AnswerEvent[]): void {
    for (const index of this.#begun) {
      if (this.#finished.has(index)) continue;
      if (!this.#ended.has(index)) {
        if (this.#options.interrupts) throw interrupted();
        this.#endedBare = true;
      }
      this.#finish(index, "stop", events);
    }
    this.#isOver = true;
  }

  #callsOf(index: number): OpenAiToolCalls {
    return this.#calls.getOrInsertComputed(
      index,
      () => new OpenAiToolCalls({ callsMax: this.#options.parallelToolCalls ? Infinity : 1, choice: index }),
    );
  }

  /**
   * Returns the logprobs of a piece. Only the first text must have them: some servers send none for tokens that came
   * together.
   */
  #logprobs(value: unknown): TokenLogprobs | undefined {
    const { topLogprobs, needsLogprobs } = this.#options;
    const logprobs = value && topLogprobs !== undefined ? logprobsIn(value, topLogprobs) : undefined;
    if (logprobs === undefined && needsLogprobs && !this.#hasText) throw logprobsUnsupported();
    return logprobs;
  }
}

function markedLeftOut(): Fault {
  return new Fault("upstream_error", {
    message: "The runtime takes what the model thinks, and the tools it calls, out of its text; use a chat for that.",
    internal: "the model wrote what its server takes for a thought or a call, and that is not told here",
  });
}
