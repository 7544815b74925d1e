import type { TokenLogprobs } from "#shared/answer/answer-event.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { ItemStatus, OutputItem, Tell } from "./output-item.ts";

/** The differences between text, reasoning and reasoning summary. Some clients read reasoning only as a summary. */
interface TextKind {
  readonly idPrefix: string;
  /** The prefix of the names of its text events; `partEvent` is the prefix of its part's events. */
  readonly event: string;
  readonly partEvent: string;
  /** The index of the part in the item. The item has only one part. */
  readonly place: object;
  item(parts: readonly object[]): object;
  part(text: string, logprobs: readonly object[]): object;
  /** The fields of its events beside the text. */
  beside(logprobs: readonly object[]): object;
}

const kinds = {
  text: {
    idPrefix: "msg_",
    event: "response.output_text",
    partEvent: "response.content_part",
    place: { content_index: 0 },
    item: (content) => ({ type: "message", role: "assistant", content }),
    part: (text, logprobs) => ({ type: "output_text", text, annotations: [], logprobs }),
    beside: (logprobs) => ({ logprobs }),
  },
  reasoning: {
    idPrefix: "rs_",
    event: "response.reasoning_text",
    partEvent: "response.content_part",
    place: { content_index: 0 },
    item: (content) => ({ type: "reasoning", summary: [], content }),
    part: (text) => ({ type: "reasoning_text", text }),
    beside: () => ({}),
  },
  summary: {
    idPrefix: "rs_",
    event: "response.reasoning_summary_text",
    partEvent: "response.reasoning_summary_part",
    place: { summary_index: 0 },
    item: (summary) => ({ type: "reasoning", summary }),
    part: (text) => ({ type: "summary_text", text }),
    beside: () => ({}),
  },
} as const satisfies Record<string, TextKind>;

/** An output item of one part: text or reasoning of an answer. */
export class TextItem implements OutputItem {
  readonly is: keyof typeof kinds;
  readonly #kind: TextKind;
  readonly #id: string;
  readonly #index: number;
  readonly #tell: Tell;
  readonly #logprobs: object[] = [];
  #text = "";
  #status: ItemStatus = "in_progress";

  constructor(is: keyof typeof kinds, index: number, tell: Tell) {
    this.is = is;
    this.#kind = kinds[is];
    this.#id = newToken(this.#kind.idPrefix);
    this.#index = index;
    this.#tell = tell;
    tell("response.output_item.added", { output_index: index, item: this.#with([]) });
    tell(`${this.#kind.partEvent}.added`, { ...this.#place(), part: this.#part() });
  }

  add(delta: string, logprobs: TokenLogprobs = []): void {
    const likely = logprobs.map(toldLogprob);
    this.#text += delta;
    this.#logprobs.push(...likely);
    this.#tell(`${this.#kind.event}.delta`, { ...this.#place(), delta, ...this.#kind.beside(likely) });
  }

  end(status: ItemStatus): void {
    this.#status = status;
    const place = this.#place();
    this.#tell(`${this.#kind.event}.done`, { ...place, text: this.#text, ...this.#kind.beside(this.#logprobs) });
    this.#tell(`${this.#kind.partEvent}.done`, { ...place, part: this.#part() });
    this.#tell("response.output_item.done", { output_index: this.#index, item: this.told() });
  }

  told(): object {
    return this.#with([this.#part()]);
  }

  #with(parts: readonly object[]): object {
    return { id: this.#id, status: this.#status, ...this.#kind.item(parts) };
  }

  #part(): object {
    return this.#kind.part(this.#text, this.#logprobs);
  }

  #place(): object {
    return { item_id: this.#id, output_index: this.#index, ...this.#kind.place };
  }
}

/** Writes a token with its `bytes`, which this API requires, even when they are empty. */
function toldLogprob({ top_logprobs: others, ...token }: TokenLogprobs[number]): object {
  return { ...withBytes(token), top_logprobs: others.map(withBytes) };
}

function withBytes(token: Omit<TokenLogprobs[number], "top_logprobs">): object {
  return { ...token, bytes: token.bytes ?? [] };
}
