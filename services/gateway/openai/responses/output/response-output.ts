import type { AnswerEvent, FinishReason, Usage } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/token.ts";
import { CallItem } from "./call-item.ts";
import { charactersSaid } from "./characters-said.ts";
import type { FunctionName } from "../function-names.ts";
import type { OutputItem, Tell } from "./output-item.ts";
import type { ResponseTerms } from "../response-terms.ts";
import { TextItem } from "./text-item.ts";

/** What a response says of its answer once that has ended. */
export interface ToldOutput {
  readonly status: "completed" | "incomplete";
  readonly incomplete_details: { readonly reason: string } | null;
  readonly output: readonly object[];
  readonly usage: object;
}

/** How long an answer may be: all of it is held to be told once more at its end, in a stream four times. */
export const responseCharactersMax = 512 * 1024;

/** What an item counts for beside what it says: all that stands around that in a stream. */
const itemCharacters = 512;

/** Why an answer is incomplete, by how it finished. */
const cutShort: Partial<Record<FinishReason, string>> = {
  length: "max_output_tokens",
  content_filter: "content_filter",
};

/**
 * An answer as a list of items, made of its events: a text goes on until something else is said. Calls of functions may
 * come mixed, so that each is open until the end.
 */
export class ResponseOutput {
  readonly #tell: Tell;
  readonly #terms: Pick<ResponseTerms, "thoughts" | "namespaced">;
  readonly #items: OutputItem[] = [];
  readonly #calls = new Map<number, CallItem>();
  /** What is being said. */
  #text: TextItem | undefined;
  #characters = 0;
  #reason: FinishReason = "stop";
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(tell: Tell, terms: Pick<ResponseTerms, "thoughts" | "namespaced">) {
    this.#tell = tell;
    this.#terms = terms;
  }

  take(event: AnswerEvent): void {
    this.#charge(charactersSaid(event));
    switch (event.kind) {
      case "text":
        return this.#textOf("text").add(event.text, event.logprobs);
      case "reasoning":
        return this.#textOf(this.#terms.thoughts).add(event.text);
      case "tool-call-start": {
        this.#endText();
        const { index, id = newToken("call_"), name } = event;
        const called = { id, name, ...this.#namespaced(name) };
        this.#calls.set(index, this.#begin(new CallItem(called, this.#items.length, this.#tell)));
        return;
      }
      case "tool-call-delta":
        return this.#calls.get(event.index)?.add(event.arguments);
      case "finish":
        this.#reason = event.reason;
        return;
      case "usage":
        this.#usage = event;
        return;
      case "embedding":
    }
  }

  /** All has been said. */
  end(): ToldOutput {
    const reason = cutShort[this.#reason];
    const last = this.#items.at(-1);
    const open = [...(this.#text === undefined ? [] : [this.#text]), ...this.#calls.values()];
    for (const item of open) item.end(reason !== undefined && item === last ? "incomplete" : "completed");
    return {
      status: reason === undefined ? "completed" : "incomplete",
      incomplete_details: reason === undefined ? null : { reason },
      output: this.#items.map((item) => item.told()),
      usage: toldUsage(this.#usage),
    };
  }

  #textOf(is: TextItem["is"]): TextItem {
    if (this.#text?.is === is) return this.#text;
    this.#endText();
    return (this.#text = this.#begin(new TextItem(is, this.#items.length, this.#tell)));
  }

  #namespaced(name: string): FunctionName | undefined {
    const { namespaced } = this.#terms;
    return Object.hasOwn(namespaced, name) ? namespaced[name] : undefined;
  }

  #endText(): void {
    this.#text?.end("completed");
    this.#text = undefined;
  }

  #begin<Item extends OutputItem>(item: Item): Item {
    this.#charge(itemCharacters);
    this.#items.push(item);
    return item;
  }

  #charge(characters: number): void {
    this.#characters += characters;
    if (this.#characters > responseCharactersMax) throw tooLong();
  }
}

/** Clients read the details without asking whether they are there, so that what no runtime tells is none. */
function toldUsage({ promptTokens, completionTokens, cachedTokens = 0, reasoningTokens = 0 }: Usage): object {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}

function tooLong(): Fault {
  return new Fault("invalid_value", {
    message: `The answer is longer than ${responseCharactersMax} characters (responseCharactersMax); ask for it as a stream at /v1/chat/completions.`,
  });
}
