import type { AnswerEvent, Usage } from "#shared/protocol/answer-events.ts";
import { encodeJson, readJson } from "#shared/protocol/frame-payload.ts";
import { type ChatBody, type ChatMessage, contentText } from "#shared/protocol/job-bodies.ts";
import type { OfferedModel, Seam } from "#shared/protocol/model.ts";

/** Bounds what is kept of one request while its answer runs: its body, and the answer so far. */
export const continuedBytesMax = 1024 * 1024;
/** Bounds that for all requests together. Without room an answer cannot go on elsewhere, and no request is refused. */
export const continuedBytesInAllMax = 256 * 1024 * 1024;

/** A chat that asks for the rest of an answer, and the kind of seam that its machine must have proved. */
export interface Continuation {
  readonly body: Uint8Array;
  readonly seam: Seam;
}

/** The memory for answers that another machine could go on with. */
export class ContinuationRoom {
  #heldBytes = 0;

  take(bytes: number): boolean {
    if (this.#heldBytes + bytes > continuedBytesInAllMax) return false;
    this.#heldBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}

/** Pieces of a text are joined at this number, since a short string takes more memory than its characters do. */
const piecesMax = 64;

/** A text that comes in short pieces. Each piece is copied once. */
class GatheredText {
  #joined: string[] = [];
  #pieces: string[] = [];

  add(piece: string): void {
    if (this.#pieces.push(piece) < piecesMax) return;
    this.#joined.push(this.#pieces.join(""));
    this.#pieces = [];
  }

  get text(): string {
    return [...this.#joined, ...this.#pieces].join("");
  }

  clear(): void {
    this.#joined = [];
    this.#pieces = [];
  }
}

/**
 * The part of an answer that its client has, and the body of its request: enough for another machine to go on with it.
 * An answer that cannot go on elsewhere keeps nothing.
 */
export class DeliveredAnswer {
  readonly #room: ContinuationRoom;
  readonly #text = new GatheredText();
  readonly #thought = new GatheredText();
  #body: Uint8Array | undefined;
  #heldBytes = 0;
  #isOver = false;
  /** The pieces of the thought, of which agents count each as a token. */
  #thoughtPieces = 0;

  constructor(room: ContinuationRoom) {
    this.#room = room;
  }

  /** The body of the request; undefined if the answer cannot go on elsewhere. */
  get body(): Uint8Array | undefined {
    return this.#body;
  }

  get thoughtTokens(): number {
    return this.#thoughtPieces;
  }

  /** Keeps the body of the request. The body of a continuation is not kept: the answer so far is added anew each time. */
  keep(body: Uint8Array): void {
    if (this.#body !== undefined || this.#isOver) return;
    if (this.#hold(body.byteLength)) this.#body = body;
    else this.end();
  }

  /** Takes events that were passed on to the client. */
  take(events: readonly AnswerEvent[]): void {
    if (this.#isOver) return;
    for (const event of events) {
      if (event.kind === "text" || event.kind === "reasoning") this.#add(event);
      else if (event.kind !== "usage") this.end();
    }
  }

  /** Releases all of it, because the answer is over or cannot go on elsewhere. */
  end(): void {
    this.#isOver = true;
    this.#body = undefined;
    this.#text.clear();
    this.#thought.clear();
    this.#room.giveBack(this.#heldBytes);
    this.#heldBytes = 0;
  }

  /**
   * Returns what asks a machine for the rest of an answer of which `madeTokens` tokens were delivered. Undefined inside a thought, a tool call or a form, and for several answers: no machine can go on from there.
   */
  continuation(madeTokens: number): Continuation | undefined {
    const { text } = this.#text;
    if (this.#body === undefined || text === "") return undefined;
    const chat = readJson(this.#body) as ChatBody;
    if (!isPlain(chat)) return undefined;
    const thought = this.#thought.text;
    const { max_tokens: tokensMax } = chat;
    const body = {
      ...chat,
      messages: withAnswer(chat.messages, { text, thought }),
      ...(tokensMax !== undefined && { max_tokens: Math.max(1, tokensMax - madeTokens) }),
    };
    return { body: encodeJson(body), seam: seamOf(chat.tools !== undefined, thought !== "") };
  }

  #add(event: Extract<AnswerEvent, { kind: "text" | "reasoning" }>): void {
    const { kind, text, choice = 0 } = event;
    if (choice > 0 || "logprobs" in event || !this.#hold(text.length * 2)) {
      this.end();
      return;
    }
    if (kind === "reasoning") this.#thoughtPieces += 1;
    (kind === "text" ? this.#text : this.#thought).add(text);
  }

  #hold(bytes: number): boolean {
    if (this.#isOver || this.#heldBytes + bytes > continuedBytesMax || !this.#room.take(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }
}

/** True if nothing but the text before it decides how an answer goes on. A grammar would begin anew at the seam. */
function isPlain({
  n = 1,
  logprobs,
  response_format: format,
  grammar,
  structured_outputs,
  tool_choice,
}: ChatBody): boolean {
  const isForm =
    (format !== undefined && format.type !== "text") || grammar !== undefined || structured_outputs !== undefined;
  const insists = tool_choice === "required" || typeof tool_choice === "object";
  return n === 1 && logprobs !== true && !isForm && !insists;
}

/** Returns the messages with the answer so far at their end. A client may have begun that answer itself. */
function withAnswer(
  messages: readonly ChatMessage[],
  { text, thought }: { readonly text: string; readonly thought: string },
): readonly ChatMessage[] {
  const last = messages.at(-1);
  const begun = last?.role === "assistant" && last.tool_calls === undefined ? last : undefined;
  const reasoning = `${begun?.reasoning_content ?? ""}${thought}`;
  const answer = {
    ...begun,
    role: "assistant" as const,
    content: `${contentText(begun?.content)}${text}`,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
  };
  return [...(begun === undefined ? messages : messages.slice(0, -1)), answer];
}

function seamOf(hasTools: boolean, hasThought: boolean): Seam {
  if (hasTools) return hasThought ? "tools and thought" : "tools";
  return hasThought ? "thought" : "plain";
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
