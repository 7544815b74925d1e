import { z } from "zod";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault, misfitOf } from "#shared/fault/fault.ts";
import { LineCutter } from "#shared/process/cut-lines.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import type { ChatBody, TextToContinue } from "#shared/protocol/job-bodies.ts";
import { callAsText, offersTools, runtimeLogprobs } from "../adjust-answer.ts";
import {
  agentRefused,
  causeOf,
  ContextOverflow,
  estimatePromptTokens,
  meaningOf,
  modelNotFound,
  overflowInText,
  runtimeFailed,
  type RuntimeRefusal,
  tooLong,
} from "../runtime-faults.ts";
import { runtimeLineBytesMax, type Splitter } from "../runtime-answer.ts";

const count = z.int().nonnegative().nullish();

/** A line of `/api/chat`, or of `/api/generate`, which has its text in `response`. */
const answerLine = z.object({
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
  response: z.string().nullish(),
  thinking: z.string().nullish(),
  logprobs: runtimeLogprobs.nullish(),
  done: z.boolean().nullish(),
  done_reason: z.string().nullish(),
  prompt_eval_count: count,
  eval_count: count,
});
type AnswerLine = z.infer<typeof answerLine>;

/** Ollama ends an answer silently once the model has repeated the same piece this many times in a row. */
const repeatsMax = 30;

/** Matches Ollama's error for a tool call whose arguments break off. */
const brokenCall = /invalid tool call arguments.*unexpected end of JSON input/is;

/** Turns the lines of one answer of `/api/chat` or `/api/generate` into answer events. */
export class OllamaAnswer {
  readonly #request: ChatBody | TextToContinue;
  /** True if the request offered no tools: a tool call that Ollama parsed all the same is told as its text. */
  readonly #callsAsText: boolean;
  readonly #callsMax: number;
  #toolCalls = 0;
  #done = false;
  #pieces = 0;
  #piece = "";
  #repeats = 0;

  constructor(request: ChatBody | TextToContinue) {
    const chat = "messages" in request ? request : undefined;
    this.#request = request;
    this.#callsAsText = chat === undefined || !offersTools(chat);
    this.#callsMax = chat?.parallel_tool_calls === false ? 1 : Infinity;
  }

  /** Called at the end of the body, which does not prove success: an answer that is incomplete by then has failed. */
  end(): AnswerEvent[] {
    if (this.#done) return [];
    if (this.#repeats >= repeatsMax) return this.#cutOff(this.#pieces);
    throw new Fault("upstream_error", { message: "The runtime ended its answer before it was complete." });
  }

  events(line: unknown): AnswerEvent[] {
    const { success, data, error } = answerLine.safeParse(line);
    if (!success) {
      throw new Fault("upstream_error", { message: "The runtime sent an invalid line.", internal: misfitOf(error) });
    }
    if (data.error !== undefined) return this.#failure(data.error);
    return this.#done ? [] : [...this.#output(data), ...this.#closing(data)];
  }

  /** Throws the fault for an error. An error for arguments that the token limit cut off counts as `length` instead. */
  #failure(error: unknown): AnswerEvent[] {
    const text = typeof error === "string" ? error : JSON.stringify(error);
    const { max_tokens: tokensMax } = this.#request;
    if (tokensMax !== undefined && brokenCall.test(text)) return this.#cutOff(tokensMax);
    const message = "The runtime failed during its answer.";
    throw new Fault("upstream_error", { message, internal: `Ollama reported an error (${causeOf(text)})` });
  }

  /** Ends an answer that was cut off. Ollama does not report its usage, so the prompt is estimated. */
  #cutOff(completionTokens: number): AnswerEvent[] {
    this.#done = true;
    return [
      { kind: "finish", reason: "length" },
      { kind: "usage", promptTokens: estimatePromptTokens(this.#request), completionTokens },
    ];
  }

  *#output({ message, response, thinking, logprobs }: AnswerLine): Generator<AnswerEvent> {
    const thought = message?.thinking ?? "";
    // Reasoning that Ollama still separates in `/api/generate` is text: no client asked for reasoning.
    const text = message?.content ?? `${thinking ?? ""}${response ?? ""}`;
    this.#count(thought || text);
    if (thought !== "") yield { kind: "reasoning", text: thought };
    if (text !== "") yield { kind: "text", text, ...(logprobs && { logprobs }) };
    for (const { id, function: called } of message?.tool_calls ?? []) {
      const json = JSON.stringify(called.arguments ?? {});
      if (this.#callsAsText) {
        yield { kind: "text", text: callAsText(called.name, json) };
        continue;
      }
      if (this.#toolCalls >= this.#callsMax) return;
      const index = this.#toolCalls++;
      yield { kind: "tool-call-start", index, name: called.name, ...(id && { id }) };
      yield { kind: "tool-call-delta", index, arguments: json };
    }
  }

  #count(piece: string): void {
    if (piece === "") return;
    this.#repeats = piece.trim() === this.#piece ? this.#repeats + 1 : 0;
    this.#piece = piece.trim();
    this.#pieces += 1;
  }

  #closing(line: AnswerLine): AnswerEvent[] {
    if (line.done !== true) return [];
    this.#done = true;
    const usual = this.#toolCalls > 0 ? "tool_calls" : "stop";
    return [
      { kind: "finish", reason: line.done_reason === "length" ? "length" : usual },
      { kind: "usage", promptTokens: line.prompt_eval_count ?? 0, completionTokens: line.eval_count ?? 0 },
    ];
  }
}

const overflowing = /context (length|size|window)|exceed_context_size|input length/i;

/**
 * Returns the fault for an answer of Ollama that is not a success. Ollama's own text may hold paths, addresses and
 * parts of the prompt, and stays internal.
 */
export function ollamaStatusFault({ status, text }: RuntimeRefusal): Fault {
  const internal = `Ollama answered ${status} (${causeOf(text)})`;
  const refused = agentRefused(status, internal);
  if (refused !== undefined) return refused;
  if (status === 404) return modelNotFound(internal);
  if (status === 503 || status === 429) {
    return new Fault("server_is_overloaded", { message: "The runtime is overloaded.", internal });
  }
  // Ollama reports a refusal of its engine as its own failure.
  const known = meaningOf(text, internal);
  if (known !== undefined) return known;
  if (status < 500 && overflowing.test(text)) return new ContextOverflow(overflowInText(text) ?? {}, internal);
  if (status === 400) return new Fault("bad_request", { message: "The runtime refused the request.", internal });
  return runtimeFailed(text, internal);
}

/** Opens the splitter for a body of JSON lines. Empty lines are skipped. */
export function jsonLines(onValue: (value: unknown) => void, lineBytesMax = runtimeLineBytesMax): Splitter {
  const lines = new LineCutter(lineBytesMax, () => tooLong("a line", lineBytesMax));
  const onLine = (line: string): void => parseLine(line, onValue);
  return { push: (piece) => lines.push(piece, onLine), end: () => lines.end(onLine) };
}

function parseLine(line: string, onValue: (value: unknown) => void): void {
  if (line.trim() === "") return;
  const value = jsonIn(line);
  if (value !== undefined) return onValue(value);
  const message = "The runtime sent a line that is not JSON.";
  throw new Fault("upstream_error", { message, internal: `not JSON, ${line.length} characters` });
}
