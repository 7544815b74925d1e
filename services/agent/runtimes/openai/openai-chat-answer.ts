import type { AnswerEvent, TokenLogprobs } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { pickChunk, type ChunkChoice } from "./openai-chunk.ts";
import { finishReasonOf, interrupted, senseless, tellsNoLogprobs, toldBy } from "./openai-event.ts";
import { logprobsIn } from "./openai-logprobs.ts";
import { OpenAiToolCalls } from "./openai-tool-calls.ts";
import type { SentEvent } from "../read-stream.ts";

export interface AnswerOptions {
  /** The number of answers in the request (`n`). */
  readonly choices: number;
  readonly parallelToolCalls: boolean;
  /** The most alternatives to report for each token: some servers send more. */
  readonly topLogprobs: number;
  /** True if an answer without logprobs is refused. */
  readonly needsLogprobs: boolean;
  /** True if the server drops tool calls that it cannot parse. */
  readonly dropsUnreadableCalls: boolean;
  /** True if `[DONE]` without a finish reason means that the server left the answer for another request. */
  readonly interrupts?: boolean | undefined;
}

/** Turns the events of one answer of `/v1/chat/completions` into answer events, for any server. */
export class OpenAiChatAnswer {
  readonly #options: AnswerOptions;
  /** The tool calls by choice, for choices that call tools. */
  #calls: Map<number, OpenAiToolCalls> | undefined;
  readonly #begun: number[] = [];
  readonly #finished: number[] = [];
  /** Choices that got an empty finish reason. Some servers also write an empty reason on every chunk. */
  readonly #ended: number[] = [];
  #endedBare = false;
  #said = false;
  #textSaid = false;
  #over = false;
  #promptTokens: number | undefined;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  /** True if any part of the answer has come. */
  get said(): boolean {
    return this.#said;
  }

  /** The length of the prompt, once the server has reported it. */
  get promptTokens(): number | undefined {
    return this.#promptTokens;
  }

  /** True if the server reported the end of the stream. This does not prove success. */
  get over(): boolean {
    return this.#over;
  }

  /** True if `[DONE]` came for a choice without a finish reason. */
  get endedBare(): boolean {
    return this.#endedBare;
  }

  /** True if every requested answer is complete. A stream that ends before that has failed. */
  get done(): boolean {
    return this.#finished.length >= this.#options.choices;
  }

  read(event: SentEvent, said: AnswerEvent[]): void {
    if (this.#over) return;
    const told = toldBy(event, { said: this.#said });
    if (told.kind === "end") this.#end(said);
    if (told.kind !== "chunk") return;
    const { choices, usage } = pickChunk(told.value);
    for (const choice of choices) this.#choice(choice, said);
    if (usage === undefined) return;
    this.#promptTokens = usage.promptTokens;
    said.push(usage);
  }

  #choice(told: ChunkChoice, said: AnswerEvent[]): void {
    const { index, text, reasoning, calls, finishReason } = told;
    if (!this.#begun.includes(index)) this.#begun.push(index);
    const choice = index === 0 ? undefined : index;
    if (reasoning) said.push({ kind: "reasoning", choice, text: reasoning });
    if (text) said.push({ kind: "text", choice, text, logprobs: this.#logprobs(told) });
    for (const piece of calls) for (const event of this.#callsOf(index).push(piece)) said.push(event);
    this.#textSaid ||= Boolean(text);
    this.#said ||= Boolean(reasoning || text || calls.length);
    if (finishReason === "") {
      if (!this.#ended.includes(index)) this.#ended.push(index);
    } else if (finishReason !== undefined) this.#finish(index, finishReason, said);
  }

  #finish(index: number, told: string, said: AnswerEvent[]): void {
    if (this.#finished.includes(index)) return;
    const reason = finishReasonOf(told, { said: this.#said });
    this.#insistOnChoice(index);
    const calls = this.#calls?.get(index);
    if (reason === "tool_calls" && calls === undefined && this.#options.dropsUnreadableCalls) {
      throw new Fault("upstream_error", {
        message: "The model called a tool in a way that cannot be read.",
        internal: "the runtime dropped the call",
      });
    }
    if (calls !== undefined) for (const event of calls.end({ cutOff: reason === "length" })) said.push(event);
    this.#finished.push(index);
    said.push(index === 0 ? { kind: "finish", reason } : { kind: "finish", choice: index, reason });
  }

  /**
   * Ends the answer at `[DONE]`, which is success: a choice without a finish reason, or with an empty one, has stopped.
   */
  #end(said: AnswerEvent[]): void {
    for (const index of this.#begun) {
      if (this.#finished.includes(index)) continue;
      if (!this.#ended.includes(index)) {
        if (this.#options.interrupts) throw interrupted();
        this.#endedBare = true;
      }
      this.#finish(index, "stop", said);
    }
    this.#over = true;
  }

  #callsOf(index: number): OpenAiToolCalls {
    const known = this.#calls?.get(index);
    if (known !== undefined) return known;
    this.#insistOnChoice(index);
    const calls = new OpenAiToolCalls({ callsMax: this.#options.parallelToolCalls ? Infinity : 1, choice: index });
    this.#calls = (this.#calls ?? new Map()).set(index, calls);
    return calls;
  }

  #insistOnChoice(index: number): void {
    if (index >= this.#options.choices) throw senseless(`choice ${index} of ${this.#options.choices}`);
  }

  #logprobs(told: ChunkChoice): TokenLogprobs | undefined {
    const logprobs = told.logprobs ? logprobsIn(told.logprobs, this.#options.topLogprobs) : undefined;
    if (logprobs !== undefined) return logprobs;
    if (!this.#options.needsLogprobs || this.#textSaid) return undefined;
    throw tellsNoLogprobs();
  }
}
