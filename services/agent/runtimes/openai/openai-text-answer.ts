import type { AnswerEvent, TokenLogprobs } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { pickChunk, type ChunkChoice } from "./openai-chunk.ts";
import { finishReasonOf, interrupted, senseless, tellsNoLogprobs, toldBy } from "./openai-event.ts";
import { legacyLogprobsIn } from "./openai-logprobs.ts";
import type { SentEvent } from "../read-stream.ts";

export interface TextAnswerOptions {
  /** The number of requested alternatives for each token; undefined if no logprobs were requested. */
  readonly logprobs: number | undefined;
  /** True if the server silently removes reasoning and tool calls from the text. */
  readonly leavesOutMarked: boolean;
  /** True if `[DONE]` without a finish reason means that the server left the answer for another request. */
  readonly interrupts?: boolean | undefined;
}

/** Turns the events of one answer of `/v1/completions` into answer events, for any server. */
export class OpenAiTextAnswer {
  readonly #options: TextAnswerOptions;
  #begun = false;
  #endedBare = false;
  #said = false;
  #over = false;
  #done = false;
  /** True if the answer got an empty finish reason. Some servers also write an empty reason on every chunk. */
  #ended = false;
  #promptTokens: number | undefined;

  constructor(options: TextAnswerOptions) {
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

  /** True if `[DONE]` came without a finish reason. */
  get endedBare(): boolean {
    return this.#endedBare;
  }

  /** True if the answer is complete. A stream that ends before that has failed. */
  get done(): boolean {
    return this.#done;
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

  /**
   * Ends the answer at `[DONE]`, which is success: an answer without a finish reason, or with an empty one, has
   * stopped.
   */
  #end(said: AnswerEvent[]): void {
    if (this.#begun && !this.#done && !this.#ended) {
      if (this.#options.interrupts) throw interrupted();
      this.#endedBare = true;
    }
    if (this.#begun) this.#finish("stop", said);
    this.#over = true;
  }

  #choice({ index, text, finishReason: reason, logprobs: told }: ChunkChoice, said: AnswerEvent[]): void {
    if (index > 0) throw senseless(`choice ${index} of 1`);
    this.#begun = true;
    if (text) {
      const logprobs = this.#logprobs(told);
      this.#said = true;
      said.push({ kind: "text", text, ...(logprobs && { logprobs }) });
    }
    const leavesOut = !text && !reason && this.#options.leavesOutMarked;
    if (leavesOut || (reason === "tool_calls" && this.#options.leavesOutMarked)) throw leftOut();
    if (reason === "") this.#ended = true;
    else if (reason) this.#finish(reason, said);
  }

  #finish(told: string, said: AnswerEvent[]): void {
    if (this.#done) return;
    const reason = finishReasonOf(told, { said: this.#said });
    this.#done = true;
    said.push({ kind: "finish", reason });
  }

  /**
   * Returns the logprobs of a piece. Only the first text must have them: some servers send none for tokens that came
   * together.
   */
  #logprobs(told: unknown): TokenLogprobs | undefined {
    const { logprobs: others } = this.#options;
    if (others === undefined) return undefined;
    const logprobs = legacyLogprobsIn(told, others);
    if (logprobs === undefined && !this.#said) throw tellsNoLogprobs();
    return logprobs;
  }
}

function leftOut(): Fault {
  return new Fault("upstream_error", {
    message: "The runtime takes what the model thinks, and the tools it calls, out of its text; use a chat for that.",
    internal: "the model wrote what its server takes for a thought or a call, and that is not told here",
  });
}
