import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";

/** Events of the content of an answer. Usage and finish are written at its end. */
export type BlockEvent = Extract<AnswerEvent, { kind: "text" | "reasoning" | "tool-call-start" | "tool-call-delta" }>;
type CallStart = Extract<BlockEvent, { kind: "tool-call-start" }>;

/** Writes the content blocks of a stream, one after the other. */
export interface BlockWriter {
  begin(block: "text" | "reasoning" | CallStart): void;
  delta(text: string): void;
  end(): void;
}

/** Events that wait behind an open call count with their text and as many characters. */
const heldEventCharacters = 64;
/** The longest text that waits behind a call whose arguments may go on. Above it the call counts as complete. */
export const heldCharactersMax = 512 * 1024;

/**
 * Puts the events of an answer in the order of its blocks. In this API a block ends before the next one begins, but the
 * arguments of several calls may come interleaved. What belongs to a later block waits until the arguments of the open
 * call are a complete JSON object, or until the answer ends.
 */
export class ContentBlocks {
  readonly #writer: BlockWriter;
  #open: "text" | "reasoning" | OpenCall | undefined;
  #held: BlockEvent[] = [];
  #heldCharacters = 0;

  constructor(writer: BlockWriter) {
    this.#writer = writer;
  }

  take(event: BlockEvent): void {
    if (this.#belongsToOpen(event) || this.#mayClose()) this.#write(event);
    else this.#hold(event);
    if (this.#held.length > 0 && this.#mayClose()) this.#release();
  }

  /** Ends the open block and writes all that waits. */
  end(): void {
    while (this.#held.length > 0) this.#release();
    this.#close();
  }

  #write(event: BlockEvent): void {
    const open = this.#open;
    if (event.kind === "tool-call-delta") {
      if (open instanceof OpenCall && open.index === event.index) {
        open.add(event.arguments);
        this.#writer.delta(event.arguments);
      } else if (event.arguments.trim() !== "") {
        throw new Fault("upstream_error", {
          message: "The model's answer could not be understood.",
          internal: "the arguments of a tool call went on behind their end",
        });
      }
      return;
    }
    if (event.kind === "tool-call-start") {
      this.#close();
      this.#open = new OpenCall(event.index);
      this.#writer.begin(event);
      return;
    }
    if (open !== event.kind) {
      this.#close();
      this.#open = event.kind;
      this.#writer.begin(event.kind);
    }
    this.#writer.delta(event.text);
  }

  #belongsToOpen(event: BlockEvent): boolean {
    return event.kind === "tool-call-delta" && this.#open instanceof OpenCall && this.#open.index === event.index;
  }

  #mayClose(): boolean {
    return !(this.#open instanceof OpenCall) || this.#open.isComplete || this.#heldCharacters > heldCharactersMax;
  }

  #hold(event: BlockEvent): void {
    this.#held.push(event);
    const text = "text" in event ? event.text : "arguments" in event ? event.arguments : event.name;
    this.#heldCharacters += heldEventCharacters + text.length;
  }

  /** Ends the open call, and takes the events that waited behind it. */
  #release(): void {
    const held = this.#held;
    this.#held = [];
    this.#heldCharacters = 0;
    this.#close();
    for (const event of held) this.take(event);
  }

  #close(): void {
    if (this.#open !== undefined) this.#writer.end();
    this.#open = undefined;
  }
}

/** A call whose block is open. It follows its arguments up to the end of their JSON object, and keeps none of them. */
class OpenCall {
  readonly index: number;
  #depth = 0;
  #inText = false;
  #escaped = false;
  isComplete = false;

  constructor(index: number) {
    this.index = index;
  }

  add(text: string): void {
    for (const character of text) {
      if (this.#inText) {
        if (this.#escaped) this.#escaped = false;
        else if (character === "\\") this.#escaped = true;
        else if (character === '"') this.#inText = false;
      } else if (character === '"') this.#inText = true;
      else if (character === "{" || character === "[") this.#depth += 1;
      else if (character === "}" || character === "]") {
        this.#depth -= 1;
        if (this.#depth === 0) this.isComplete = true;
      }
    }
  }
}
