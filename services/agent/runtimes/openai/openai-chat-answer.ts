import type { AnswerEvent, TokenLogprobs } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { AlikeChunks } from "./alike-chunks.ts";
import type { AlikeRun } from "./alike-lines.ts";
import { readChatChunk, type ChunkChoice } from "./openai-chat-chunk.ts";
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
  /** By choice, of those that call tools. */
  #calls: Map<number, OpenAiToolCalls> | undefined;
  readonly #finished: number[] = [];
  /** Choices that were ended with a reason that is empty, as some servers also write on every chunk. */
  readonly #ended: number[] = [];
  readonly #alike = new AlikeChunks();
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
    return this.#finished.length >= this.#options.choices;
  }

  read(event: SentEvent, said: AnswerEvent[]): void {
    if (this.#over) return;
    const alike = event.kind === "event" && event.name === "" ? this.#alike.textOf(event.data) : undefined;
    if (alike === undefined) this.#readParsed(event, said);
    else if (alike !== "") said.push({ kind: "text", text: alike });
  }

  /** The events at the beginning of these bytes, where an event may begin, that say pieces of text and nothing else. */
  runIn(bytes: Uint8Array): AlikeRun | undefined {
    return this.#over ? undefined : this.#alike.runIn(bytes);
  }

  #readParsed(event: SentEvent, said: AnswerEvent[]): void {
    const told = toldBy(event, { said: this.#said });
    if (told.kind === "end") this.#end(said);
    if (told.kind !== "chunk") return;
    const { choices, usage } = readChatChunk(told.value);
    for (const choice of choices ?? []) this.#choice(choice, said);
    if (event.kind === "event" && choices?.length === 1 && !usage) this.#learn(event.data, choices[0]);
    if (usage) {
      this.#promptTokens = usage.prompt_tokens;
      said.push(usageEvent(usage));
    }
  }

  #choice(told: ChunkChoice, said: AnswerEvent[]): void {
    const index = told.index ?? 0;
    const reasoning = told.delta?.reasoning_content || told.delta?.reasoning;
    const text = told.delta?.content;
    const calls = told.delta?.tool_calls;
    const choice = index === 0 ? undefined : index;
    if (reasoning) said.push({ kind: "reasoning", choice, text: reasoning });
    if (text) said.push({ kind: "text", choice, text, logprobs: this.#logprobs(told) });
    if (calls) for (const piece of calls) for (const event of this.#callsOf(index).push(piece)) said.push(event);
    this.#textSaid ||= Boolean(text);
    this.#said ||= Boolean(reasoning || text || calls?.length);
    if (told.finish_reason === "") {
      if (!this.#ended.includes(index)) this.#ended.push(index);
    } else if (told.finish_reason) this.#finish(index, told.finish_reason, said);
  }

  /** Of a chunk that tells a piece of the first answer's text, and nothing beside it that is passed on or kept in mind. */
  #learn(data: string, told: ChunkChoice | undefined): void {
    const delta = told?.delta;
    const others = delta?.reasoning || delta?.reasoning_content || delta?.tool_calls || told?.logprobs;
    if (!told?.index && told?.finish_reason == null && delta?.content && !others)
      this.#alike.learn(data, delta.content);
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

  /** The end of the stream makes an empty reason the one that was meant. */
  #end(said: AnswerEvent[]): void {
    for (const index of this.#ended) this.#finish(index, "stop", said);
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
    const content = told.logprobs?.content;
    const logprobs = content ? logprobsIn(content, this.#options.topLogprobs) : undefined;
    if (logprobs !== undefined) return logprobs;
    if (!this.#options.needsLogprobs || this.#textSaid) return undefined;
    throw tellsNoLogprobs();
  }
}
