import { z } from "zod";
import type { AnswerEvent, TokenLogprobs } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { finishReasonOf, senseless, tellsNoLogprobs, toldBy } from "./openai-event.ts";
import { legacyLogprobsIn } from "./openai-logprobs.ts";
import { toldUsage, usageEvent } from "./openai-usage.ts";
import type { SentEvent } from "../server-sent-events.ts";

const choice = z.object({
  index: z.literal(0).nullish(),
  text: z.string().nullish(),
  finish_reason: z.string().nullish(),
  logprobs: z.unknown().optional(),
});

/** One event of a text that is continued. Extras that are malformed count as left out. */
const textChunk = z.object({
  choices: z.array(choice).nullish(),
  usage: toldUsage.nullish().catch(undefined),
});

export interface TextAnswerOptions {
  /** How many others were asked for in place of each token; undefined where no likelihood was. */
  readonly logprobs: number | undefined;
  /** Whether the server takes thoughts and calls out of the text and says nothing in their place. */
  readonly leavesOutMarked: boolean;
}

/** Turns the events of one answer of `/v1/completions` into answer events, whatever server they come from. */
export class OpenAiTextAnswer {
  readonly #options: TextAnswerOptions;
  #said = false;
  #over = false;
  #done = false;
  /** Whether it was ended with a reason that is empty, as some servers also write on every chunk. */
  #ended = false;
  #promptTokens: number | undefined;

  constructor(options: TextAnswerOptions) {
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

  /** Whether the answer is complete. A stream that ends before that has failed. */
  get done(): boolean {
    return this.#done;
  }

  read(event: SentEvent, said: AnswerEvent[]): void {
    if (this.#over) return;
    const told = toldBy(event, { said: this.#said });
    if (told.kind === "end") {
      this.#over = true;
      if (this.#ended) this.#finish("stop", said);
    }
    if (told.kind !== "chunk") return;
    const parsed = textChunk.safeParse(told.value);
    if (!parsed.success) throw senseless(parsed.error.message);
    for (const each of parsed.data.choices ?? []) this.#choice(each, said);
    if (parsed.data.usage) {
      this.#promptTokens = parsed.data.usage.prompt_tokens;
      said.push(usageEvent(parsed.data.usage));
    }
  }

  #choice(told: z.infer<typeof choice>, said: AnswerEvent[]): void {
    const { text, finish_reason: reason } = told;
    if (text) {
      const logprobs = this.#logprobs(told.logprobs);
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

  /** Only the first text has to have them: some servers tell none of tokens that came together. */
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
