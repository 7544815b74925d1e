import { z } from "zod";
import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { Fault, misfitOf } from "#shared/fault/fault.ts";
import { JsonLines, readStream } from "../read-stream.ts";
import type { RuntimeAnswer } from "../runtime-answer.ts";
import type { EmitEvents } from "../runtime.ts";
import { ollamaStreamFault } from "./ollama-fault.ts";

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
      if (this.#toolCalls > 0 && !this.#options.parallelToolCalls) return;
      const index = this.#toolCalls++;
      yield { kind: "tool-call-start", index, name: call.function.name, ...(call.id && { id: call.id }) };
      yield { kind: "tool-call-delta", index, arguments: JSON.stringify(call.function.arguments ?? {}) };
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
