import { z } from "zod";
import type { AnswerEvent, FinishReason, TokenLogprobs } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
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

/** Turns the lines of one answer of `/api/chat` into answer events. */
export class OllamaChatAnswer {
  readonly #toolCallsMax: number;
  #toolCalls = 0;
  #done = false;

  constructor(options: { parallelToolCalls: boolean }) {
    this.#toolCallsMax = options.parallelToolCalls ? Infinity : 1;
  }

  /** Whether Ollama has said that the answer is complete. A body that ends before that has failed. */
  get done(): boolean {
    return this.#done;
  }

  events(line: unknown): AnswerEvent[] {
    const parsed = chatLine.safeParse(line);
    if (!parsed.success) {
      throw new Fault("upstream_error", {
        message: "The runtime sent a line that makes no sense.",
        internal: parsed.error.message,
      });
    }
    const { error } = parsed.data;
    if (error !== undefined) throw ollamaStreamFault(typeof error === "string" ? error : JSON.stringify(error));
    return this.#done ? [] : [...this.#said(parsed.data), ...this.#closing(parsed.data)];
  }

  *#said({ message, logprobs }: ChatLine): Generator<AnswerEvent> {
    if (message?.thinking) yield { kind: "reasoning", text: message.thinking };
    if (message?.content) {
      yield { kind: "text", text: message.content, ...(logprobs && { logprobs: tokenLogprobs(logprobs) }) };
    }
    for (const call of message?.tool_calls ?? []) {
      if (this.#toolCalls >= this.#toolCallsMax) return;
      const index = this.#toolCalls++;
      yield { kind: "tool-call-start", index, name: call.function.name, ...(call.id && { id: call.id }) };
      yield { kind: "tool-call-delta", index, arguments: JSON.stringify(call.function.arguments ?? {}) };
    }
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

function tokenLogprobs(told: NonNullable<ChatLine["logprobs"]>): TokenLogprobs {
  const complete = ({ token, logprob, bytes }: (typeof told)[number]) => ({ token, logprob, bytes: bytes ?? null });
  return told.map((each) => ({ ...complete(each), top_logprobs: (each.top_logprobs ?? []).map(complete) }));
}
