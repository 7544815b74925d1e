import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Answering, AnswerTaker } from "../answering.ts";
import { ContextOverflow } from "../context-overflow.ts";
import type { OpenAiProfile } from "./openai-profile.ts";
import type { RuntimeAnswer } from "../runtime-answer.ts";
import type { Question, RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun } from "../runtime.ts";
import { SentEvents, type SentEvent } from "../server-sent-events.ts";
import type { AlikeRun } from "./alike-lines.ts";

/** Of so many events at most, an answer learns what those after them are like. */
const learntFromMax = 4;

const lineFeed = 0x0a;
const nothing = new Uint8Array();

/** One streamed answer as it is read, whatever it is an answer to. */
export interface StreamedAnswer {
  readonly said: boolean;
  readonly over: boolean;
  readonly done: boolean;
  readonly promptTokens: number | undefined;
  /** Adds what this event says. What came before a fault in it is among that nevertheless. */
  read(event: SentEvent, said: AnswerEvent[]): void;
  /** What the bytes begin with, where an event may begin, that says pieces of the first choice's text and nothing else. */
  runIn?(bytes: Uint8Array): AlikeRun | undefined;
}

/** What the events of an answer mean for a request, where that is not what they say. */
interface Meaning {
  push(events: readonly AnswerEvent[]): readonly AnswerEvent[];
  /** Whether a piece of text means what it says, just now. */
  readonly passesText: boolean;
}

type Room = Promise<void> | undefined;

interface Asking {
  readonly question: Question;
  readonly connection: RuntimeConnection;
  readonly profile: OpenAiProfile;
  readonly run: Pick<ChatRun, "contextWindow" | "onProgress">;
  readonly meant?: Meaning | undefined;
}

/** Asks, and tells what the answer says as it comes. One that is not complete when it ends has failed. */
export function readAnswer(answer: StreamedAnswer, asking: Asking): Answering {
  return new AnswerReading(answer, asking);
}

/**
 * This runs for every piece of every answer, and each generator around it costs as much again as it does: what is to be
 * done with each event is done in here.
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
    this.#insistOnEnd();
  }

  async handTo(taker: AnswerTaker): Promise<void> {
    const body = this.#ask();
    await body.handTo((piece) => {
      const room = this.#take(piece, taker);
      if (this.#answer.over) body.complete();
      return room;
    });
    const { said, failure } = this.#read((events) => this.#sent.end(events));
    if (said.length > 0) await taker.events(said);
    if (failure !== undefined) throw failure.error;
    this.#insistOnEnd();
  }

  /** Runs of events that are alike, of which nearly all of a stream is, are not taken apart. */
  #take(piece: Uint8Array, taker: AnswerTaker): Room {
    if (taker.texts === undefined) return this.#takeEvents(piece, taker);
    const begun = this.#takeRun(piece, taker);
    if (begun.rest.byteLength === 0) return begun.room;
    const learntFrom = endOfEvents(begun.rest, learntFromMax);
    const room = bothOf(begun.room, this.#takeEvents(begun.rest.subarray(0, learntFrom), taker));
    if (learntFrom === begun.rest.byteLength) return room;
    const run = this.#takeRun(begun.rest.subarray(learntFrom), taker);
    return bothOf(room, bothOf(run.room, this.#takeEvents(run.rest, taker)));
  }

  /** Takes the run that these bytes begin with, if there is one that means what it says. */
  #takeRun(bytes: Uint8Array, taker: AnswerTaker): { readonly room: Room; readonly rest: Uint8Array } {
    const passes = this.#sent.between && (this.#asking.meant?.passesText ?? true);
    const run = passes ? this.#answer.runIn?.(bytes) : undefined;
    if (run === undefined) return { room: undefined, rest: bytes };
    // To write something is progress by itself.
    const isSilent = run.bounds.length === 0;
    if (isSilent) this.#asking.run.onProgress();
    const room = isSilent ? undefined : taker.texts?.(run);
    return { room, rest: run.end === bytes.byteLength ? nothing : bytes.subarray(run.end) };
  }

  #takeEvents(bytes: Uint8Array, taker: AnswerTaker): Room {
    if (bytes.byteLength === 0) return undefined;
    const { said, failure } = this.#read((events) => this.#sent.push(bytes, events));
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

  #insistOnEnd(): void {
    if (!this.#answer.done) {
      throw new Fault("upstream_error", { message: "The runtime ended its answer before it was complete." });
    }
    refuseUnread(this.#answer, this.#asking.run.contextWindow);
  }
}

function bothOf(one: Room, other: Room): Room {
  return one === undefined || other === undefined ? (one ?? other) : Promise.all([one, other]).then(() => undefined);
}

/** Where so many events end, or the bytes if there are no more. */
function endOfEvents(bytes: Uint8Array, events: number): number {
  let end = 0;
  for (let count = 0; count < events; count += 1) {
    let at = bytes.indexOf(lineFeed, end);
    while (at >= 0 && bytes[at + 1] !== lineFeed) at = bytes.indexOf(lineFeed, at + 1);
    if (at < 0) return bytes.byteLength;
    end = at + 2;
  }
  return end;
}

interface ReadEvents {
  readonly said: readonly AnswerEvent[];
  readonly failure: { readonly error: unknown } | undefined;
}

/** What is said by the events that are split off now, also before one that fails: that is still said. */
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

/** Whether an event only says that the server is at work, such as how far it has read the prompt. */
function isSignOfLife(event: SentEvent): boolean {
  return event.kind === "comment" || event.data.includes('"prompt_progress"');
}

/** A server that would read a prompt of any length is left as soon as it says how long this one is. */
function refuseTooLong(event: SentEvent, by: { profile: OpenAiProfile; contextWindow: number }): void {
  const promptTokens = event.kind === "comment" ? by.profile.promptTokensIn?.(event.text) : undefined;
  if (promptTokens === undefined || promptTokens <= by.contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime began to read a prompt longer than the window");
}

/** Some servers read no more of a prompt than fits, answer nothing, and call that a success. */
function refuseUnread({ said, promptTokens = 0 }: StreamedAnswer, contextWindow: number): void {
  if (said || promptTokens <= contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime answered nothing to a prompt longer than the window");
}
