import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { callAsText } from "../adjust-answer.ts";

/** A piece of a tool call, as runtimes send it: whole or in pieces, with or without an index, an id or a type. */
export interface CallPiece {
  readonly index?: number | undefined;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly arguments?: string | undefined;
}

interface BegunCall {
  readonly theirIndex: number | undefined;
  /** The place among the calls that are passed on; undefined until the call's name is known. */
  index: number | undefined;
  id: string | undefined;
  name: string;
  arguments: string;
  /** True if the call was told as text. */
  told: boolean;
}

/** The most characters in the arguments of all calls of one answer. The arguments are kept for the check at the end. */
export const toolArgumentsCharactersMax = 8 * 1024 * 1024;

/**
 * Normalises the tool calls of one answer. Each call begins once, with its name, and is numbered from 0. Its arguments
 * follow as text, whatever form they came in. Calls beyond `callsMax` are dropped.
 *
 * Arguments are passed on as they come. Only their end shows if they are JSON. If they are not, `end` fails the answer.
 * A failed answer has no finish, so no client takes the arguments for a call.
 */
export class OpenAiToolCalls {
  readonly #callsMax: number;
  readonly #asText: boolean;
  readonly #choice: number | undefined;
  readonly #calls: BegunCall[] = [];
  #started = 0;
  #characters = 0;

  /** With `asText`, calls are told as text, for a client that offered no tools. */
  constructor(options: { callsMax: number; choice: number; asText: boolean }) {
    this.#callsMax = options.callsMax;
    this.#asText = options.asText;
    this.#choice = options.choice === 0 ? undefined : options.choice;
  }

  *push(piece: CallPiece): Generator<AnswerEvent> {
    const call = this.#callOf(piece);
    const { name, arguments: text = "" } = piece;
    this.#characters += text.length + 1;
    if (this.#characters > toolArgumentsCharactersMax) {
      throw new Fault("upstream_error", {
        message: `The model's tool calls are longer than ${toolArgumentsCharactersMax} characters (toolArgumentsCharactersMax).`,
      });
    }
    call.id ??= piece.id || undefined;
    call.arguments += text;
    if (call.index !== undefined) {
      if (text !== "") yield* this.#delta(call.index, text);
    } else if (name) {
      yield* this.texts();
      call.name = name;
      call.index = this.#started++;
      if (call.index >= this.#callsMax || this.#asText) return;
      yield { kind: "tool-call-start", choice: this.#choice, index: call.index, name, id: call.id };
      if (call.arguments !== "") yield* this.#delta(call.index, call.arguments);
    }
  }

  /** Tells the calls so far as text. Called before anything follows them, and only does so with `asText`. */
  *texts(): Generator<AnswerEvent> {
    if (!this.#asText) return;
    for (const call of this.#calls.slice(0, this.#callsMax)) {
      if (call.told || call.index === undefined) continue;
      call.told = true;
      yield { kind: "text", choice: this.#choice, text: callAsText(call.name, call.arguments) };
    }
  }

  /**
   * Ends the answer and checks the arguments. An answer that was cut off at its limit may end within the arguments of a
   * call.
   */
  *end(options: { cutOff: boolean }): Generator<AnswerEvent> {
    yield* this.texts();
    if (options.cutOff) return;
    for (const { index, arguments: text } of this.#calls.slice(0, this.#callsMax)) {
      if (index === undefined) throw unreadable("a tool call without a name");
      if (text.trim() === "") yield* this.#delta(index, "{}");
      else if (jsonIn(text) === undefined) throw unreadable(`arguments that are not JSON, ${text.length} characters`);
    }
  }

  *#delta(index: number, text: string): Generator<AnswerEvent> {
    if (index >= this.#callsMax || this.#asText) return;
    yield { kind: "tool-call-delta", choice: this.#choice, index, arguments: text };
  }

  /**
   * Returns the call that a piece belongs to. Some runtimes give every call the same index, others give every piece a
   * new id.
   */
  #callOf({ index: theirIndex, id, name }: CallPiece): BegunCall {
    const known =
      theirIndex === undefined ? this.#calls.at(-1) : this.#calls.findLast((call) => call.theirIndex === theirIndex);
    const isAnother = Boolean(name) && known?.index !== undefined && (!id || id !== known.id);
    // A repeated name with the same index and without an id is a repetition. Without index and id it begins another
    // call.
    const isRepetition = theirIndex !== undefined && !id;
    if (known !== undefined && (!isAnother || isRepetition)) return known;
    const call: BegunCall = { theirIndex, index: undefined, id: undefined, name: "", arguments: "", told: false };
    this.#calls.push(call);
    return call;
  }
}

export function unreadable(internal: string): Fault {
  return new Fault("upstream_error", { message: "The model's tool call could not be parsed.", internal });
}
