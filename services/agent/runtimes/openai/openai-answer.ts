import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody, TextToContinue } from "#shared/protocol/job-bodies.ts";
import { logprobsIn } from "../adjust-answer.ts";
import { ContextOverflow } from "../runtime-faults.ts";
import { readStream, type SentEvent, sentEvents } from "../runtime-answer.ts";
import type { Question, RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun, EmitEvents } from "../runtime.ts";
import { answerFault, interrupted, invalidEvent, leftOut, unfinished } from "./openai-fault.ts";
import type { Fields, Served } from "./openai-profile.ts";
import { type CallPiece, OpenAiToolCalls, unreadable } from "./openai-tool-calls.ts";

interface AnswerRequest extends Pick<Served, "profile"> {
  readonly question: Question;
  readonly connection: RuntimeConnection;
  readonly run: Pick<ChatRun, "contextWindow" | "onProgress">;
  /** Called for an answer that ended in `[DONE]` without a finish reason. */
  readonly onBareEnd?: (() => void) | undefined;
}

/** Sends the request and emits the answer as it comes. An answer that is incomplete at its end has failed. */
export async function readAnswer(answer: OpenAiAnswer, request: AnswerRequest, emit: EmitEvents): Promise<void> {
  const { profile, run, connection, onBareEnd } = request;
  const { contextWindow, onProgress } = run;
  const body = connection.stream(request.question);
  let isAlive = false;
  const events: AnswerEvent[] = [];
  const splitter = sentEvents((event) => {
    // A comment or a report of progress in the prompt only shows that the server is at work.
    isAlive ||= event.kind === "comment" || event.data.includes('"prompt_progress"');
    const promptTokens = event.kind === "comment" ? (profile.promptTokensIn?.(event.text) ?? 0) : 0;
    if (promptTokens > contextWindow)
      throw new ContextOverflow({ promptTokens }, "the runtime began to read a prompt longer than the window");
    answer.read(event, events);
  });
  const onPiece = (): void => {
    onProgress(isAlive && !answer.hasOutput ? "prefill" : undefined);
    isAlive = false;
    if (answer.isOver) body.complete();
  };
  await readStream(body, { splitter, events, onPiece }, emit);
  if (!answer.isComplete) throw await incompleteFault(answer, request);
  if (answer.endedBare) onBareEnd?.();
  const { hasOutput, promptTokens = 0 } = answer;
  // Some servers read only the part of a prompt that fits, and report success.
  if (hasOutput || promptTokens <= contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime answered nothing to a prompt longer than the window");
}

async function incompleteFault({ hasOutput }: OpenAiAnswer, request: AnswerRequest): Promise<Fault> {
  const { question, connection, profile } = request;
  if (!hasOutput && profile.failsSilently) {
    // Requests a single token without a stream. The refusal has the status and the reason that the stream lacked.
    const whole = { ...Object(question.body), stream: false, stream_options: undefined, max_tokens: 1 };
    await connection.text({ ...question, body: whole });
  }
  return unfinished(hasOutput);
}

/** Finish reasons by the server's word. Every other word means that the model was done. */
const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["content_filter", "content_filter"],
]);

/** Finish reasons by which a server reports a failed answer, if it reports the failure at all. */
const failureReasons = new Set(["error", "abort"]);

/** Turns the events of one answer of `/v1/chat/completions` or `/v1/completions` into answer events, for any server. */
export class OpenAiAnswer {
  readonly #served: Served;
  /** The number of answers in the request (`n`). */
  readonly #choices: number = 1;
  readonly #callsMax: number = 1;
  /** True if the request offered no tools: a tool call that the server parsed all the same is told as its text. */
  readonly #callsAsText: boolean = false;
  /** The most alternatives to report for each token: some servers send more. Undefined leaves logprobs out. */
  readonly #topLogprobs: number | undefined;
  /** True if an answer without logprobs is refused. */
  readonly #needsLogprobs: boolean;
  /** True if the server silently removes reasoning and tool calls from the text. */
  readonly #leavesOutMarked: boolean = false;
  /** The tool calls by choice, for choices that call tools. */
  readonly #calls = new Map<number, OpenAiToolCalls>();
  readonly #begun = new Set<number>();
  readonly #finished = new Set<number>();
  /** Choices that got an empty finish reason. Some servers also write an empty reason on every chunk. */
  readonly #ended = new Set<number>();
  textPieces = 0;
  /** True if any part of the answer has come. */
  hasOutput = false;
  /** True if the server reported the end of the stream. This does not prove success. */
  isOver = false;
  /** True if `[DONE]` came for a choice without a finish reason, and counted as success. */
  endedBare = false;
  /** The length of the prompt, once the server has reported it. */
  promptTokens: number | undefined;

  constructor(request: ChatBody | TextToContinue, served: Served) {
    const { profile } = served;
    this.#served = served;
    if ("messages" in request) {
      this.#choices = profile.answersSeveral ? (request.n ?? 1) : 1;
      this.#callsMax = request.parallel_tool_calls === false ? 1 : Infinity;
      this.#callsAsText = request.tools === undefined || request.tool_choice === "none";
      this.#topLogprobs = request.top_logprobs ?? 0;
      this.#needsLogprobs = profile.mayIgnoreLogprobs === true && request.logprobs === true;
    } else {
      this.#topLogprobs = request.logprobs;
      this.#needsLogprobs = request.logprobs !== undefined;
      this.#leavesOutMarked = profile.texts.leavesOutMarked ?? false;
    }
  }

  /** True if every requested answer is complete. A stream that ends before that has failed. */
  get isComplete(): boolean {
    return this.#finished.size >= this.#choices;
  }

  /** Adds the answer events of this event. Answer events before a fault in it are still added. */
  read(event: SentEvent, events: AnswerEvent[]): void {
    if (this.isOver || event.kind === "comment") return;
    const { name, data } = event;
    if (!data.startsWith("{") && data.trim() === "[DONE]") return this.#end(events);
    const value = parseEvent(data);
    const error: unknown = name === "error" || typeof value === "string" ? value : Object(value)["error"];
    // Servers report an error in one of these forms, or as a finish reason.
    if (error) throw answerFault(error, this);
    const { choices, usage } = pickChunk(value);
    for (const choice of choices) this.#readChoice(choice, events);
    if (usage === undefined) return;
    this.promptTokens = usage.promptTokens;
    events.push(usage);
  }

  #readChoice(given: ChunkChoice, events: AnswerEvent[]): void {
    const { index, text, reasoning, calls, finishReason } = given;
    if (index >= this.#choices) throw invalidEvent(`choice ${index} of ${this.#choices}`);
    this.#begun.add(index);
    const choice = index === 0 ? undefined : index;
    if (this.#calls.size > 0 && (text || reasoning)) events.push(...(this.#calls.get(index)?.texts() ?? []));
    if (reasoning) events.push({ kind: "reasoning", choice, text: reasoning });
    if (text) events.push({ kind: "text", choice, text, logprobs: this.#logprobs(given.logprobs) });
    for (const piece of calls) events.push(...this.#callsOf(index).push(piece));
    if (text) this.textPieces += 1;
    this.hasOutput ||= text !== undefined || reasoning !== undefined || calls.length > 0;
    if (this.#leavesOutMarked && ((!text && !finishReason) || finishReason === "tool_calls")) throw leftOut();
    if (finishReason === "") this.#ended.add(index);
    else if (finishReason !== undefined) this.#finish(given, events);
  }

  #finish(
    { index, finishReason = "stop", stop }: Partial<ChunkChoice> & { index: number },
    events: AnswerEvent[],
  ): void {
    if (this.#finished.has(index)) return;
    if (failureReasons.has(finishReason)) throw answerFault({ type: finishReason }, this);
    const reason = finishReasons.get(finishReason) ?? "stop";
    const calls = this.#calls.get(index);
    if (reason === "tool_calls" && calls === undefined && this.#served.profile.dropsUnreadableCalls) {
      throw unreadable("the runtime dropped the call");
    }
    if (calls !== undefined) events.push(...calls.end({ cutOff: reason === "length" }));
    this.#finished.add(index);
    const told = reason === "tool_calls" && this.#callsAsText ? "stop" : reason;
    events.push({ kind: "finish", choice: index === 0 ? undefined : index, reason: told, stop });
  }

  /** Ends the answer at `[DONE]`, which is success: a choice with no finish reason, or an empty one, has stopped. */
  #end(events: AnswerEvent[]): void {
    for (const index of this.#begun) {
      if (this.#finished.has(index)) continue;
      if (!this.#ended.has(index)) {
        if (this.#served.model.interrupts) throw interrupted();
        this.endedBare = true;
      }
      this.#finish({ index }, events);
    }
    this.isOver = true;
  }

  #callsOf(index: number): OpenAiToolCalls {
    const options = { callsMax: this.#callsMax, choice: index, asText: this.#callsAsText };
    return this.#calls.getOrInsertComputed(index, () => new OpenAiToolCalls(options));
  }

  /** Returns the logprobs of a piece. Only the first text must have them: servers may send several tokens together. */
  #logprobs(value: unknown): TokenLogprobs | undefined {
    const most = this.#topLogprobs;
    const logprobs = value && most !== undefined ? logprobsIn(value, most) : undefined;
    if (logprobs !== undefined || !this.#needsLogprobs || this.textPieces > 0) return logprobs;
    const message = "The runtime of this model does not support 'logprobs'.";
    throw new Fault("unsupported_parameter", { message, param: "logprobs" });
  }
}

function parseEvent(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    // Drops the parser's own error: its message quotes a part of the text, which may be a user's answer.
    throw invalidEvent(`not JSON, ${data.length} characters`);
  }
}

export type UsageEvent = Extract<AnswerEvent, { kind: "usage" }>;

/**
 * Picks the fields of one event of `/v1/chat/completions` or `/v1/completions`. Each server omits other fields. Throws
 * when a field of the answer has the wrong type; malformed usage and logprobs count as missing.
 */
export function pickChunk(value: unknown): { choices: readonly ChunkChoice[]; usage: UsageEvent | undefined } {
  const chunk = fieldsOf(value, "a chunk");
  const { usage } = chunk;
  return {
    choices: pick(chunk, "choices", "list")?.map(pickChoice) ?? [],
    usage: usage ? pickUsage(usage) : undefined,
  };
}

/** The fields of one choice of a chunk that an answer needs. Empty texts count as missing. */
type ChunkChoice = ReturnType<typeof pickChoice>;

function pickChoice(value: unknown) {
  const choice = fieldsOf(value, "a choice");
  const delta = pick(choice, "delta", "fields") ?? {};
  const { stop_reason: stop, logprobs } = choice;
  return {
    index: pick(choice, "index", "count") ?? 0,
    text: pick(delta, "content", "text") || pick(choice, "text", "text") || undefined,
    reasoning: pick(delta, "reasoning_content", "text") || pick(delta, "reasoning", "text") || undefined,
    calls: pick(delta, "tool_calls", "list")?.map(pickCall) ?? [],
    /** Some servers write an empty reason on every chunk. */
    finishReason: pick(choice, "finish_reason", "text"),
    /** The stop string that ended the answer, which vLLM tells. */
    stop: typeof stop === "string" ? stop : undefined,
    logprobs,
  };
}

function pickCall(value: unknown): CallPiece {
  const call = fieldsOf(value, "a tool call");
  const called = pick(call, "function", "fields") ?? {};
  const { arguments: given } = called;
  return {
    index: pick(call, "index", "count"),
    id: pick(call, "id", "text"),
    name: pick(called, "name", "text"),
    arguments: typeof given === "string" ? given : JSON.stringify(pick(called, "arguments", "fields")),
  };
}

function pickUsage(given: unknown): UsageEvent | undefined {
  const count = (fields: unknown, name: string): number | undefined => {
    const value: unknown = Object(fields)[name];
    return kindOf(value) === "count" ? Number(value) : undefined;
  };
  const usage: Fields = Object(given);
  const promptTokens = count(usage, "prompt_tokens");
  if (promptTokens === undefined) return undefined;
  return {
    kind: "usage",
    promptTokens,
    completionTokens: count(usage, "completion_tokens") ?? 0,
    cachedTokens: count(usage["prompt_tokens_details"], "cached_tokens"),
    reasoningTokens: count(usage["completion_tokens_details"], "reasoning_tokens"),
  };
}

/** The kinds of values that the fields of a chunk have. */
interface Kinds {
  readonly text: string;
  readonly list: readonly unknown[];
  readonly fields: Fields;
  readonly count: number;
}

function kindOf(value: unknown): keyof Kinds | undefined {
  if (typeof value === "string") return "text";
  if (Array.isArray(value)) return "list";
  if (typeof value === "object" && value !== null) return "fields";
  return Number.isSafeInteger(value) && Number(value) >= 0 ? "count" : undefined;
}

/** Returns a field; undefined when it is missing or null, which servers write for a missing field. */
function pick<Kind extends keyof Kinds>(fields: Fields, name: string, kind: Kind): Kinds[Kind] | undefined {
  const value = fields[name];
  if (value === null || value === undefined) return undefined;
  if (kindOf(value) === kind) return value as Kinds[Kind];
  throw invalidEvent(`'${name}' has the wrong type`);
}

function fieldsOf(value: unknown, what: string): Fields {
  if (kindOf(value) === "fields") return value as Fields;
  throw invalidEvent(`${what} that is no object`);
}
