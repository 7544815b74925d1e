import type { Usage } from "#shared/protocol/answer-events.ts";
import { eventOf, RecordReader } from "#shared/protocol/frame.ts";
import { encodeJson, readJson } from "#shared/protocol/frame-payload.ts";
import { type ChatBody, type CompleteBody, contentText } from "#shared/protocol/job-bodies.ts";
import { type OfferedModel, type Seam, seamWith } from "#shared/protocol/model.ts";

/** Bounds what is kept of one request while its answer runs: its body, and the answer so far. */
export const continuedBytesMax = 1024 * 1024;
/** Bounds that for all requests together. Without room an answer cannot go on elsewhere, and no request is refused. */
export const continuedBytesInAllMax = 256 * 1024 * 1024;

/** A request for the rest of an answer, and the kind of seam that its machine must have proved. */
export interface Continuation {
  readonly body: Uint8Array;
  readonly seam: Seam;
}

/** The memory that all answers take with which another machine could go on. */
export interface ContinuationRoom {
  heldBytes: number;
}

/** An answer as its machines made it so far. */
interface Made {
  readonly text: string;
  readonly thought: string;
  /** The pieces of the thought, of which agents count each as a token. */
  readonly thoughtTokens: number;
}

const nothing = new Uint8Array();
/** The memory for records grows from this size on, by doubling. */
const recordBytesMin = 1_024;

/**
 * The part of an answer that its client has, and the body of its request: enough for another machine to go on with it.
 * An answer that cannot go on elsewhere keeps nothing.
 */
export class DeliveredAnswer {
  readonly #room: ContinuationRoom;
  /** The body of the request; undefined if the answer cannot go on elsewhere. */
  body: Uint8Array | undefined;
  /** The part that earlier machines made. */
  #before: Made = { text: "", thought: "", thoughtTokens: 0 };
  /**
   * The records of the present machine, as they came: only an answer that breaks off is read once more. Whoever passes
   * records on adds them behind the others, and takes them off `freeBytes`.
   */
  records = nothing;
  freeBytes = 0;
  #heldBytes = 0;
  #isOver = false;

  constructor(room: ContinuationRoom) {
    this.#room = room;
  }

  /** Keeps the body of the request. The body of a continuation is not kept: the answer so far is added anew each time. */
  keep(body: Uint8Array): void {
    if (this.body === undefined && this.#hold(body.byteLength)) this.body = body;
  }

  /** Called when another machine goes on with the answer. Returns the tokens of its thought so far. */
  movedOn(): number {
    this.#before = this.#made() ?? this.#before;
    this.freeBytes = this.records.byteLength;
    return this.#before.thoughtTokens;
  }

  /** Releases all of it, because the answer is over or cannot go on elsewhere. */
  end(): void {
    this.#isOver = true;
    this.body = undefined;
    this.records = nothing;
    this.freeBytes = 0;
    this.#room.heldBytes -= this.#heldBytes;
    this.#heldBytes = 0;
  }

  /**
   * Returns what asks a machine for the rest of an answer of which `madeTokens` tokens were delivered. Undefined inside a
   * thought, a tool call or a form, and for several answers: no machine can go on from there.
   */
  continuation(madeTokens: number): Continuation | undefined {
    const made = this.#made();
    if (this.body === undefined || made === undefined || made.text === "") return undefined;
    const asked = readJson(this.body) as ChatBody | CompleteBody;
    const begun = "messages" in asked ? chatWith(asked, made) : textWith(asked, made);
    if (begun === undefined) return undefined;
    const { max_tokens: tokensMax, min_tokens: tokensMin } = asked;
    const body = {
      ...begun,
      ...(tokensMax !== undefined && { max_tokens: Math.max(1, tokensMax - madeTokens) }),
      ...(tokensMin !== undefined && { min_tokens: Math.max(0, tokensMin - madeTokens) }),
    };
    const hasTools = "messages" in asked && asked.tools !== undefined;
    return { body: encodeJson(body), seam: seamWith({ tools: hasTools, thought: made.thought !== "" }) };
  }

  /** Returns the answer so far. Undefined if there is more in it than one text and one thought. */
  #made(): Made | undefined {
    let { text, thought, thoughtTokens } = this.#before;
    const reader = new RecordReader({ textMax: Infinity, broken: (what) => new Error(what) });
    for (const record of reader.read(this.records.subarray(0, this.records.byteLength - this.freeBytes))) {
      const event = eventOf(record);
      if (event?.kind === "usage") continue;
      const isText = event?.kind === "text" || event?.kind === "reasoning";
      if (!isText || (event.choice ?? 0) > 0 || "logprobs" in event) return undefined;
      if (event.kind === "text") text += event.text;
      else {
        thought += event.text;
        thoughtTokens += 1;
      }
    }
    return { text, thought, thoughtTokens };
  }

  /** Makes room for so many bytes of records. False if there is none, or the answer is over. */
  grows(bytes: number): boolean {
    const usedBytes = this.records.byteLength - this.freeBytes;
    const grown = Math.max(recordBytesMin, this.records.byteLength * 2, usedBytes + bytes);
    if (!this.#hold(grown - this.records.byteLength)) return false;
    const records = new Uint8Array(grown);
    records.set(this.records);
    this.records = records;
    this.freeBytes = grown - usedBytes;
    return true;
  }

  /** Takes memory for the answer. Without room for it, nothing of the answer is kept any more. */
  #hold(bytes: number): boolean {
    const isOwn = !this.#isOver && this.#heldBytes + bytes <= continuedBytesMax;
    const hasRoom = isOwn && this.#room.heldBytes + bytes <= continuedBytesInAllMax;
    if (!hasRoom) this.end();
    else {
      this.#heldBytes += bytes;
      this.#room.heldBytes += bytes;
    }
    return hasRoom;
  }
}

/**
 * Returns the chat with the answer so far at its end, where the client may have begun the answer itself. Undefined if more
 * than the text before it decides how the answer goes on: a grammar would begin anew at the seam.
 */
function chatWith(chat: ChatBody, { text, thought }: Made): ChatBody | undefined {
  const { n = 1, logprobs, response_format: format, grammar, structured_outputs: structured, tool_choice } = chat;
  const isForm = (format && format.type !== "text") || grammar !== undefined || structured !== undefined;
  const insists = tool_choice === "required" || typeof tool_choice === "object";
  if (n > 1 || logprobs === true || isForm || insists) return undefined;
  const last = chat.messages.at(-1);
  const begun = last?.role === "assistant" && last.tool_calls === undefined ? last : undefined;
  const reasoning = `${begun?.reasoning_content ?? ""}${thought}`;
  const answer = {
    ...begun,
    role: "assistant" as const,
    content: `${contentText(begun?.content)}${text}`,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
  };
  return { ...chat, messages: [...(begun === undefined ? chat.messages : chat.messages.slice(0, -1)), answer] };
}

/** Returns the text with what was made of it at its end. An echo has begun the answer with the text itself. */
function textWith({ echo, ...asked }: CompleteBody, { text }: Made): CompleteBody | undefined {
  const { prompts, n = 1, logprobs, suffix } = asked;
  const [prompt = "", ...others] = prompts;
  if (others.length > 0 || n > 1 || logprobs !== undefined || suffix !== undefined) return undefined;
  return { ...asked, prompts: [echo === true ? text : prompt + text] };
}

/** True if a model is known to be the same as the one that began an answer. */
export function isSame(model: OfferedModel, from: OfferedModel): boolean {
  return from.digest !== undefined && model.digest === from.digest;
}

/**
 * Returns the usage of a whole answer from that of its last part. The prompt of that part held the parts before, which are
 * `made` tokens of the answer.
 */
export function wholeUsage<Part extends Usage>(
  part: Part,
  made: { readonly tokens: number; readonly thought: number },
): Part {
  if (made.tokens === 0) return part;
  const { completionTokens, reasoningTokens = 0, cachedTokens } = part;
  const thought = reasoningTokens + made.thought;
  const promptTokens = Math.max(0, part.promptTokens - made.tokens);
  return {
    ...part,
    promptTokens,
    ...(cachedTokens !== undefined && { cachedTokens: Math.min(cachedTokens, promptTokens) }),
    completionTokens: completionTokens + made.tokens,
    ...(thought > 0 && { reasoningTokens: thought }),
  };
}
