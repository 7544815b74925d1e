import type { AnswerEvent, Usage } from "#shared/protocol/answer-events.ts";
import { type Fault, faultEntry, type FieldNames } from "#shared/fault/fault.ts";
import { faultBody } from "../../http/answer-faults.ts";
import type { FaultShape } from "../../http/request-state.ts";
import { linesMedia } from "#shared/protocol/model.ts";
import type { AnswerRenderer, AnswerTimings } from "../../jobs/answer-parts.ts";
import { argumentsText } from "../messages/render-message.ts";
import { assertLength, eventCharactersMin } from "../../chats/render-completions.ts";
import type { Rendering } from "../../requests/endpoint.ts";
import { ChatChoice } from "../chat/render-chat.ts";
import { embeddingList, type ListWords } from "../embeddings/render-embeddings.ts";
import type { OllamaTerms } from "./ollama-request.ts";

const nothing = new Uint8Array();

/** The JSON around the pieces of an answer, which differs between chats and prompts. */
const words = {
  chat: {
    text: `,"message":{"role":"assistant","content":`,
    thought: `,"message":{"role":"assistant","content":"","thinking":`,
    close: "}",
  },
  generate: { text: `,"response":`, thought: `,"response":"","thinking":`, close: "" },
} as const;

/** The end of a line that is not the last. */
const goesOn = `,"done":false}\n`;

/** Returns the beginning of a line. All lines of an answer tell the time at which it was begun. */
function openLine(model: string, createdMs: number): string {
  return JSON.stringify({ model, created_at: new Date(createdMs).toISOString() }).slice(0, -1);
}

/** Nanoseconds, in which this API tells durations. */
const perMs = 1_000_000;

/** Returns the times on the machine. An answer that ended at a limit of its key has none. */
function durations(timings: AnswerTimings | undefined) {
  if (timings === undefined) return {};
  return { total_duration: timings.totalMs * perMs, load_duration: Math.round(timings.loadMs) * perMs };
}

function metrics({ promptTokens, completionTokens }: Usage, timings: AnswerTimings | undefined): object {
  const { queuedMs = 0, totalMs = 0, firstTokenMs } = timings ?? {};
  const firstMs = firstTokenMs ?? totalMs;
  return {
    ...durations(timings),
    prompt_eval_count: promptTokens,
    prompt_eval_duration: timings && Math.max(0, firstMs - queuedMs) * perMs,
    eval_count: completionTokens,
    eval_duration: timings && Math.max(0, totalMs - firstMs) * perMs,
  };
}

/**
 * Renders an answer as lines of JSON, one for each piece, or as one object. The last line has `done` and comes after a
 * success only. Calls of tools come whole, in the line before it. Only the varying parts of a line are built anew: this
 * runs for every token.
 */
class OllamaAnswer implements AnswerRenderer {
  readonly #words: Readonly<Record<"text" | "thought" | "close" | "closePiece", string>>;
  readonly #streamed: boolean;
  /** The parts of the answer that are told at its end. */
  readonly #rest = new ChatChoice();
  #characters = 0;
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(open: string, shape: keyof typeof words, streamed: boolean) {
    const { text, thought, close } = words[shape];
    this.#words = { text: open + text, thought: open + thought, close, closePiece: close + goesOn };
    this.#streamed = streamed;
  }

  push(events: readonly AnswerEvent[]): Uint8Array {
    let lines = "";
    for (const event of events) {
      if (event.kind === "usage") this.#usage = event;
      else if (event.kind === "embedding" || event.kind === "scores" || event.kind === "audio") continue;
      else if (this.#streamed && event.kind === "text") lines += this.#textLine(event);
      else if (this.#streamed && event.kind === "reasoning")
        lines += this.#words.thought + JSON.stringify(event.text) + this.#words.closePiece;
      else this.#characters += Math.max(eventCharactersMin, this.#rest.fold(event));
    }
    assertLength(this.#characters);
    return lines === "" ? nothing : Buffer.from(lines);
  }

  end(timings?: AnswerTimings): Uint8Array {
    const { message, logprobs, finish_reason: reason } = this.#rest.json(0);
    const calls = message.tool_calls?.map(({ id, function: { name, arguments: text } }, index) => ({
      id,
      function: { index, name, arguments: JSON.parse(argumentsText(text)) as object },
    }));
    const thought = message.reasoning === undefined ? "" : `,"thinking":${JSON.stringify(message.reasoning)}`;
    const called = calls === undefined ? "" : `,"tool_calls":${JSON.stringify(calls)}`;
    const said = this.#words.text + JSON.stringify(message.content ?? "") + thought + called + this.#words.close;
    // This API has no reason of its own for calls of tools.
    const done = { done: true, done_reason: reason === "length" ? "length" : "stop" };
    const last = `,${JSON.stringify({ ...done, ...metrics(this.#usage, timings) }).slice(1)}\n`;
    if (!this.#streamed) return Buffer.from(said + writtenLogprobs(logprobs?.content) + last);
    return Buffer.from(`${calls === undefined ? "" : said + goesOn}${this.#words.text}""${this.#words.close}${last}`);
  }

  #textLine({ text, logprobs }: Extract<AnswerEvent, { kind: "text" }>): string {
    const said = this.#words.text + JSON.stringify(text);
    return logprobs === undefined
      ? said + this.#words.closePiece
      : said + this.#words.close + writtenLogprobs(logprobs) + goesOn;
  }
}

function writtenLogprobs(logprobs: object | undefined): string {
  return logprobs === undefined ? "" : `,"logprobs":${JSON.stringify(logprobs)}`;
}

/** Returns the JSON around the vectors of an answer. */
function listWords({ shape, model }: OllamaTerms): ListWords {
  const item = (_: number, vector: string): string => vector;
  if (shape === "embeddings") return { open: `{"embedding":`, item, close: () => "}" };
  const close: ListWords["close"] = (prompt_eval_count, timings) =>
    `],${JSON.stringify({ ...durations(timings), prompt_eval_count }).slice(1)}`;
  return { open: `${JSON.stringify({ model }).slice(0, -1)},"embeddings":[`, item, close };
}

/** Returns Ollama's error body, a text, with the code and the path of Trunkline's faults beside it. */
function ollamaFaultBody(fault: Fault) {
  const { message, param, code } = faultBody(fault).error;
  // The `ollama` command shows `status` of a 401, and not its `error`.
  const status = faultEntry(fault.code).status === 401 ? { status: message } : {};
  return { error: message, ...status, code, param };
}

/** The shape of errors at the paths of this API. */
export const ollamaFaults: FaultShape = { prefix: "/api", body: ollamaFaultBody };

/** Maps the path of a field, as machines name it, to the field of this API that it came from. */
const fieldsOfJobs: FieldNames = [
  [/^max_tokens$/, "options.num_predict"],
  [/^((?:top_[kp]|(?:min|typical)_p|temperature|seed|stop|\w+_penalty)(?:\[.*)?)$/, "options.$1"],
  [/^response_format.*/, "format"],
  [/^(?:reasoning_effort|chat_template_kwargs)(?:$|\..*)/, "think"],
  [/^(messages\[\d+\])\.content\[\d+\].*/, "$1.images"],
  [/^tools\[.*/, "tools"],
];
/** The same for a prompt, whose messages the client never wrote. */
const fieldsOfPrompts: FieldNames = [
  [/^messages\[\d+\]\.content\[\d+\].*/, "images"],
  [/^(?:messages|prompts?)(?:$|\[.*)/, "prompt"],
  ...fieldsOfJobs,
];

/** Returns the renderer of an answer, the words of its faults, and the lines that a stream has besides its pieces. */
export function renderOllama(terms: OllamaTerms, { streamed }: { readonly streamed: boolean }): Rendering {
  const { shape, model } = terms;
  const { text, close } = words[shape === "chat" ? "chat" : "generate"];
  return {
    render: (head) =>
      shape === "embed" || shape === "embeddings"
        ? embeddingList(head, "float", listWords(terms))
        : new OllamaAnswer(openLine(model, head.createdSeconds * 1_000), shape, streamed),
    ends: {
      media: linesMedia,
      whole: nothing,
      failed: (fault) => Buffer.from(`${JSON.stringify(ollamaFaultBody(fault))}\n`),
      // Lines of JSON have no comments, so an empty piece says what the request waits for.
      waiting: (reason) =>
        Buffer.from(`${openLine(model, Date.now())}${text}""${close},"x_trunkline":${JSON.stringify(reason)}${goesOn}`),
    },
    adaptFault: (fault) => fault.withFieldOf(shape === "generate" ? fieldsOfPrompts : fieldsOfJobs),
  };
}

/** Returns the answer to a request that only loads a model. The model is loaded when a prompt asks for it. */
export function loadedAnswer({ shape, model }: OllamaTerms, createdMs: number): object {
  if (shape === "embed") return { model, embeddings: [] };
  if (shape === "embeddings") return { embedding: [] };
  const said = shape === "chat" ? { message: { role: "assistant", content: "" } } : { response: "" };
  return { model, created_at: new Date(createdMs).toISOString(), ...said, done: true, done_reason: "load" };
}
