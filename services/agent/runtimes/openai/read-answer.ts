import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Answering, AnswerTaker } from "../answering.ts";
import { ContextOverflow } from "../context-overflow.ts";
import type { OpenAiProfile } from "./openai-profile.ts";
import type { RuntimeAnswer } from "../runtime-answer.ts";
import type { Question, RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun } from "../runtime.ts";
import { SentEvents, type SentEvent } from "../server-sent-events.ts";

/** One streamed answer while it is read, for any kind of request. */
export interface StreamedAnswer {
  readonly said: boolean;
  readonly over: boolean;
  readonly done: boolean;
  readonly promptTokens: number | undefined;
  /** True if `[DONE]` came without a finish reason and counted as success. */
  readonly endedBare: boolean;
  /** Adds the answer events of this event. Answer events before a fault in it are still added. */
  read(event: SentEvent, said: AnswerEvent[]): void;
}

/** Rewrites the events of an answer for a request that needs other events, such as `CallsAsText`. */
interface Meaning {
  push(events: readonly AnswerEvent[]): readonly AnswerEvent[];
}

interface Asking {
  readonly question: Question;
  readonly connection: RuntimeConnection;
  readonly profile: OpenAiProfile;
  readonly run: Pick<ChatRun, "contextWindow" | "onProgress">;
  readonly meant?: Meaning | undefined;
  /** Called for an answer that ended in `[DONE]` without a finish reason. */
  readonly onBareEnd?: (() => void) | undefined;
}

/** Sends the request and returns the answer as it comes. An answer that is incomplete at its end has failed. */
export function readAnswer(answer: StreamedAnswer, asking: Asking): Answering {
  return new AnswerReading(answer, asking);
}

/**
 * Reads one answer. This code runs for every piece of every answer. Each generator around it would cost as much again,
 * so all work on an event is done here.
 */
class AnswerReading implements Answering {
  readonly #answer: StreamedAnswer;
  readonly #asking: Asking;
  readonly #sent = new SentEvents();

  constructor(answer: StreamedAnswer, asking: Asking) {
    this.#answer = answer;
    this.#asking = asking;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly AnswerEvent[]> {
    const body = this.#ask();
    for await (const piece of body) {
      const { said, failure } = this.#read((events) => this.#sent.push(piece, events));
      if (said.length > 0) yield said;
      if (failure !== undefined) throw failure.error;
      if (!this.#answer.over) continue;
      body.complete();
      break;
    }
    const { said, failure } = this.#read((events) => this.#sent.end(events));
    if (said.length > 0) yield said;
    if (failure !== undefined) throw failure.error;
    await this.#insistOnEnd();
  }

  async handTo(taker: AnswerTaker): Promise<void> {
    const body = this.#ask();
    await body.handTo((piece) => {
      const room = this.#takePiece(piece, taker);
      if (this.#answer.over) body.complete();
      return room;
    });
    const { said, failure } = this.#read((events) => this.#sent.end(events));
    if (said.length > 0) await taker.events(said);
    if (failure !== undefined) throw failure.error;
    await this.#insistOnEnd();
  }

  #takePiece(piece: Uint8Array, taker: AnswerTaker): Promise<void> | undefined {
    const { said, failure } = this.#read((events) => this.#sent.push(piece, events));
    const room = said.length > 0 ? taker.events(said) : undefined;
    if (failure !== undefined) throw failure.error;
    return room;
  }

  #ask(): RuntimeAnswer {
    return this.#asking.connection.stream(this.#asking.question);
  }

  #read(split: (events: SentEvent[]) => void): ReadEvents {
    const { said, failure } = readEvents(this.#answer, this.#asking, split);
    const { meant } = this.#asking;
    return { said: meant === undefined || said.length === 0 ? said : meant.push(said), failure };
  }

  async #insistOnEnd(): Promise<void> {
    const { said, done, endedBare } = this.#answer;
    const { profile, run, onBareEnd } = this.#asking;
    if (!done) {
      if (!said && profile.failsSilently) await this.#askWhy();
      throw new Fault("upstream_error", {
        message: "The runtime ended its answer before it was complete.",
        internal: said
          ? "the stream ended without a finish_reason or [DONE]"
          : "the stream ended before it said anything",
      });
    }
    if (endedBare) onBareEnd?.();
    refuseUnread(this.#answer, run.contextWindow);
  }

  /** Requests a single token without a stream. The refusal has the status and the reason that the stream lacked. */
  async #askWhy(): Promise<void> {
    const { question, connection } = this.#asking;
    const whole = { ...Object(question.body), stream: false, stream_options: undefined, max_tokens: 1 };
    await connection.text({ ...question, body: whole });
  }
}

interface ReadEvents {
  readonly said: readonly AnswerEvent[];
  readonly failure: { readonly error: unknown } | undefined;
}

/** Reads the events that are split off now. Answer events before a failure are still returned. */
function readEvents(
  answer: StreamedAnswer,
  { profile, run: { contextWindow, onProgress } }: Asking,
  split: (events: SentEvent[]) => void,
): ReadEvents {
  const events: SentEvent[] = [];
  const said: AnswerEvent[] = [];
  let failure: { readonly error: unknown } | undefined;
  try {
    split(events);
  } catch (error) {
    failure = { error };
  }
  try {
    for (const event of events) {
      refuseTooLong(event, { profile, contextWindow });
      answer.read(event, said);
    }
  } catch (error) {
    failure = { error };
  }
  onProgress(answer.said || !events.some(isSignOfLife) ? undefined : "prefill");
  return { said, failure };
}

/** True if an event only shows that the server is at work, such as its progress in the prompt. */
function isSignOfLife(event: SentEvent): boolean {
  return event.kind === "comment" || event.data.includes('"prompt_progress"');
}

/** Fails the answer once the server reports a prompt over the window, for a server that takes prompts of any length. */
function refuseTooLong(event: SentEvent, by: { profile: OpenAiProfile; contextWindow: number }): void {
  const promptTokens = event.kind === "comment" ? by.profile.promptTokensIn?.(event.text) : undefined;
  if (promptTokens === undefined || promptTokens <= by.contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime began to read a prompt longer than the window");
}

/**
 * Refuses an empty answer to a prompt over the window: some servers read only the part that fits, and report success.
 */
function refuseUnread({ said, promptTokens = 0 }: StreamedAnswer, contextWindow: number): void {
  if (said || promptTokens <= contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime answered nothing to a prompt longer than the window");
}
