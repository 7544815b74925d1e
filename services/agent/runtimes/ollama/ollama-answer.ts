import { z } from "zod";
import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { Fault, misfitOf } from "#shared/fault/fault.ts";
import { callAsText } from "../adjust-answer.ts";
import { causeOf, meaningOf } from "../complaints.ts";
import { ContextOverflow, type Overflow } from "../context-overflow.ts";
import { LineCutter } from "#shared/process/line-cutter.ts";
import { readStream, runtimeLineBytesMax, tooLong, type Splitter, type RuntimeAnswer } from "../runtime-answer.ts";
import type { Refusal } from "../runtime-connection.ts";
import type { EmitEvents } from "../runtime.ts";

const count = z.int().nonnegative().nullish();

const tokenLogprob = z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()).nullish() });

const chatLine = z.object({
  error: z.unknown().optional(),
  message: z
    .object({
      content: z.string().nullish(),
      thinking: z.string().nullish(),
      tool_calls: z
        .array(
          z.object({
            id: z.string().nullish(),
            function: z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()).nullish() }),
          }),
        )
        .nullish(),
    })
    .nullish(),
  logprobs: z.array(tokenLogprob.extend({ top_logprobs: z.array(tokenLogprob).nullish() })).nullish(),
  done: z.boolean().nullish(),
  done_reason: z.string().nullish(),
  prompt_eval_count: count,
  eval_count: count,
});
type ChatLine = z.infer<typeof chatLine>;

export interface OllamaAnswerOptions {
  readonly parallelToolCalls: boolean;
  /** True if the request offered no tools: a tool call that Ollama parsed all the same is told as its text. */
  readonly callsAsText?: boolean;
  /** The token limit of the request. */
  readonly tokensMax?: number | undefined;
  /** Returns the estimated length of the prompt, for an answer whose usage Ollama does not report. */
  readonly promptTokens: () => number;
}

/** Ollama ends an answer silently once the model has repeated the same piece this many times in a row. */
const repeatsMax = 30;

/** Matches Ollama's error for a tool call whose arguments break off. */
const brokenCall = /invalid tool call arguments.*unexpected end of JSON input/is;

/** Sends the request and emits the answer as it comes. */
export async function readOllamaAnswer(
  body: RuntimeAnswer,
  reading: {
    readonly answer: OllamaAnswer;
    readonly onPiece: () => void;
    /** Converts a line of another form to the form of a chat. */
    readonly asInChats?: (line: unknown) => unknown;
  },
  emit: EmitEvents,
): Promise<void> {
  const { answer, onPiece, asInChats = (line) => line } = reading;
  const read = (line: unknown, events: AnswerEvent[]): void => void events.push(...answer.events(asInChats(line)));
  await readStream(body, { splitter: new JsonLines(), read, onPiece }, emit);
  const rest = [...answer.end()];
  if (rest.length > 0) await emit(rest);
}

/** Splits a body of JSON lines into its values. Empty lines are skipped. */
export class JsonLines implements Splitter<unknown> {
  readonly #lines: LineCutter;

  constructor({ lineBytesMax = runtimeLineBytesMax } = {}) {
    this.#lines = new LineCutter(lineBytesMax, () => tooLong("a line", lineBytesMax));
  }

  push(piece: Uint8Array, onValue: (value: unknown) => void): void {
    this.#lines.push(piece, (line) => parseLine(line, onValue));
  }

  end(onValue: (value: unknown) => void): void {
    this.#lines.end((line) => parseLine(line, onValue));
  }
}

function parseLine(line: string, onValue: (value: unknown) => void): void {
  if (line.trim() !== "") onValue(parseJson(line));
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // Drops the parser's own error: its message quotes a part of the line, which may be a user's answer.
    throw new Fault("upstream_error", {
      message: "The runtime sent a line that is not JSON.",
      internal: `not JSON, ${line.length} characters`,
    });
  }
}

/** Turns the lines of one answer of `/api/chat`, or of lines converted to its form, into answer events. */
export class OllamaAnswer {
  readonly #options: OllamaAnswerOptions;
  #toolCalls = 0;
  #done = false;
  #pieces = 0;
  #piece = "";
  #repeats = 0;

  constructor(options: OllamaAnswerOptions) {
    this.#options = options;
  }

  /** Called at the end of the body, which does not prove success: an answer that is incomplete by then has failed. */
  *end(): Generator<AnswerEvent> {
    if (this.#done) return;
    if (this.#repeats >= repeatsMax) yield* this.#cut(this.#pieces);
    else throw new Fault("upstream_error", { message: "The runtime ended its answer before it was complete." });
  }

  events(line: unknown): AnswerEvent[] {
    const parsed = chatLine.safeParse(line);
    if (!parsed.success) {
      throw new Fault("upstream_error", {
        message: "The runtime sent an invalid line.",
        internal: misfitOf(parsed.error),
      });
    }
    const { error } = parsed.data;
    if (error !== undefined) return [...this.#failure(typeof error === "string" ? error : JSON.stringify(error))];
    return this.#done ? [] : [...this.#output(parsed.data), ...this.#closing(parsed.data)];
  }

  /** Throws the fault for an error. An error for arguments that the token limit cut off counts as `length` instead. */
  *#failure(text: string): Generator<AnswerEvent> {
    const { tokensMax } = this.#options;
    if (tokensMax === undefined || !brokenCall.test(text)) throw ollamaStreamFault(text);
    yield* this.#cut(tokensMax);
  }

  /** Ends an answer that was cut off. Ollama does not report its usage. */
  *#cut(completionTokens: number): Generator<AnswerEvent> {
    this.#done = true;
    yield { kind: "finish", reason: "length" };
    yield { kind: "usage", promptTokens: this.#options.promptTokens(), completionTokens };
  }

  *#output({ message, logprobs }: ChatLine): Generator<AnswerEvent> {
    this.#count(message?.thinking || message?.content || "");
    if (message?.thinking) yield { kind: "reasoning", text: message.thinking };
    if (message?.content) {
      yield { kind: "text", text: message.content, ...(logprobs && { logprobs: tokenLogprobs(logprobs) }) };
    }
    for (const call of message?.tool_calls ?? []) {
      const { name, arguments: args = {} } = call.function;
      const json = JSON.stringify(args ?? {});
      if (this.#options.callsAsText) yield { kind: "text", text: callAsText(name, json) };
      if (this.#options.callsAsText) continue;
      if (this.#toolCalls > 0 && !this.#options.parallelToolCalls) return;
      const index = this.#toolCalls++;
      yield { kind: "tool-call-start", index, name, ...(call.id && { id: call.id }) };
      yield { kind: "tool-call-delta", index, arguments: json };
    }
  }

  #count(piece: string): void {
    if (piece === "") return;
    this.#repeats = piece.trim() === this.#piece ? this.#repeats + 1 : 0;
    this.#piece = piece.trim();
    this.#pieces += 1;
  }

  *#closing(line: ChatLine): Generator<AnswerEvent> {
    if (line.done !== true) return;
    this.#done = true;
    yield { kind: "finish", reason: this.#finishReason(line.done_reason) };
    const promptTokens = line.prompt_eval_count ?? 0;
    yield { kind: "usage", promptTokens, completionTokens: line.eval_count ?? 0 };
  }

  #finishReason(reason: string | null | undefined): FinishReason {
    if (reason === "length") return "length";
    return this.#toolCalls > 0 ? "tool_calls" : "stop";
  }
}

function tokenLogprobs(values: NonNullable<ChatLine["logprobs"]>): TokenLogprobs {
  const complete = ({ token, logprob, bytes }: (typeof values)[number]) => ({ token, logprob, bytes: bytes ?? null });
  return values.map((each) => ({ ...complete(each), top_logprobs: (each.top_logprobs ?? []).map(complete) }));
}

const overflowing = /context (length|size|window)|exceed_context_size|input length/i;

/**
 * Returns the fault for an answer of Ollama that is not a success. Ollama's own text may hold paths, addresses and
 * parts of the prompt, and stays internal.
 */
export function ollamaStatusFault({ status, text }: Refusal): Fault {
  const internal = `Ollama answered ${status} (${causeOf(text)})`;
  if (status === 404) {
    const message = "The model does not exist on this machine.";
    return new Fault("model_not_found", { message, param: "model", internal });
  }
  if (status === 503 || status === 429) {
    return new Fault("server_is_overloaded", { message: "The runtime is overloaded.", internal });
  }
  // Ollama reports a refusal of its engine as its own failure.
  const known = meaningOf(text, internal);
  if (known !== undefined) return known;
  if (status < 500 && overflowing.test(text)) return new ContextOverflow(overflowIn(text), internal);
  if (status === 400) return new Fault("bad_request", { message: "The runtime refused the request.", internal });
  return new Fault("upstream_error", { message: "The runtime failed.", internal });
}

/**
 * Reads the two numbers of a prompt that is too long from the text of Ollama's engine. That text is llama-server's own
 * error as JSON, or a sentence of the MLX engine. Ollama's own text has no numbers.
 */
function overflowIn(text: string): Overflow {
  const plain = text.replaceAll("\\", "");
  const [prompt, window] = [/"n_prompt_tokens"\s*:\s*(\d+)/.exec(plain)?.[1], /"n_ctx"\s*:\s*(\d+)/.exec(plain)?.[1]];
  if (prompt !== undefined && window !== undefined) {
    return { promptTokens: Number(prompt), windowTokens: Number(window) };
  }
  const match = /\((\d+) tokens\) exceeds .*?\((\d+) tokens\)/.exec(plain);
  return match === null ? {} : { promptTokens: Number(match[1]), windowTokens: Number(match[2]) };
}

/** Returns the fault for an error that Ollama reported in the middle of an answer. */
function ollamaStreamFault(text: string): Fault {
  return new Fault("upstream_error", {
    message: "The runtime failed during its answer.",
    internal: `Ollama reported an error (${causeOf(text)})`,
  });
}
