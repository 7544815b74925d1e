import type { AnswerEvent, FinishReason, Usage } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { CallItem, type EmitEvent, type ItemPosition, type OutputItem, TextItem } from "./output-items.ts";
import type { ResponseTerms } from "./response-request.ts";

/**
 * Maximum length of an answer. The whole answer is buffered and sent again at its end; a stream sends it again four
 * times.
 */
export const responseCharactersMax = 512 * 1024;

/** Characters that an item counts for besides its content: the JSON around the content in a stream. */
const itemCharacters = 512;

/** The reason of an incomplete answer, by its finish reason. */
const cutShort: Partial<Record<FinishReason, string>> = {
  length: "max_output_tokens",
  content_filter: "content_filter",
};

type OutputTerms = Pick<ResponseTerms, "thoughts" | "called">;

/**
 * Builds the list of output items from answer events. A text item stays open until an event of another kind arrives.
 * Deltas of several function calls may interleave, so each call stays open until the end.
 */
export class ResponseOutput {
  readonly #emit: EmitEvent;
  readonly #terms: OutputTerms;
  /** The end of the ids of all items, which are the same wherever the same answer is rendered. */
  readonly #name: string;
  readonly #items: OutputItem[] = [];
  readonly #calls = new Map<number, CallItem>();
  /** The text item that is still open. */
  #text: TextItem | undefined;
  #characters = 0;
  #reason: FinishReason = "stop";
  #usage: Usage = { promptTokens: 0, completionTokens: 0 };

  constructor(emit: EmitEvent, terms: OutputTerms, responseId: string) {
    this.#emit = emit;
    this.#terms = terms;
    this.#name = responseId.slice(responseId.indexOf("_") + 1);
  }

  take(event: AnswerEvent): void {
    switch (event.kind) {
      case "text":
        this.#charge(event.text.length + (event.logprobs === undefined ? 0 : JSON.stringify(event.logprobs).length));
        return this.#textOf("text").add(event.text, event.logprobs);
      case "reasoning":
        this.#charge(event.text.length);
        return this.#textOf(this.#terms.thoughts).add(event.text);
      case "tool-call-start": {
        this.#charge(event.name.length + (event.id?.length ?? 0));
        this.#endText();
        const { index, id = newToken("call_"), name } = event;
        const called = { ...(this.#terms.called.get(name) ?? { is: "function", name }), id };
        this.#calls.set(index, this.#begin(new CallItem(called, this.#position(), this.#emit)));
        return;
      }
      case "tool-call-delta":
        this.#charge(event.arguments.length);
        return this.#calls.get(event.index)?.add(event.arguments);
      case "finish":
        this.#reason = event.reason;
        return;
      case "usage":
        this.#usage = event;
        return;
      case "embedding":
      case "scores":
      case "audio":
    }
  }

  /** Ends all open items and returns the final fields of the response. */
  end() {
    const reason = cutShort[this.#reason];
    const last = this.#items.at(-1);
    const open = [...(this.#text === undefined ? [] : [this.#text]), ...this.#calls.values()];
    for (const item of open) item.end(reason !== undefined && item === last ? "incomplete" : "completed");
    return {
      status: reason === undefined ? "completed" : "incomplete",
      incomplete_details: reason === undefined ? null : { reason },
      output: this.#items.map((item) => item.json()),
      usage: renderedUsage(this.#usage),
    };
  }

  #textOf(is: TextItem["is"]): TextItem {
    if (this.#text?.is === is) return this.#text;
    this.#endText();
    return (this.#text = this.#begin(new TextItem(is, this.#position(), this.#emit)));
  }

  #endText(): void {
    this.#text?.end("completed");
    this.#text = undefined;
  }

  #position(): ItemPosition {
    const index = this.#items.length;
    return { index, name: `${this.#name}${index}` };
  }

  #begin<Item extends OutputItem>(item: Item): Item {
    this.#charge(itemCharacters);
    this.#items.push(item);
    return item;
  }

  #charge(characters: number): void {
    this.#characters += characters;
    if (this.#characters <= responseCharactersMax) return;
    throw new Fault("invalid_value", {
      message: `The answer is longer than ${responseCharactersMax} characters (responseCharactersMax); ask for it as a stream at /v1/chat/completions.`,
    });
  }
}

/**
 * Writes the usage. Clients read the details without checking that they exist, so counts that no runtime reports are 0.
 */
function renderedUsage({ promptTokens, completionTokens, cachedTokens = 0, reasoningTokens = 0 }: Usage): object {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}
