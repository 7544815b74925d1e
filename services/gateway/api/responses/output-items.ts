import type { AnswerEvent, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { FunctionName } from "./inner-tools.ts";

/** Emits an event of the stream: its type and its fields. */
export type Tell = (type: string, fields: Readonly<Record<string, unknown>>) => void;

/** The status of an item. When an answer was cut short, its last item is `incomplete`. */
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** An output item of a response. It emits the events of its own progress. */
export interface OutputItem {
  /** Ends the item: no more content follows. */
  end(status: ItemStatus): void;
  /** Returns the item in its present state, as the response shows it. */
  told(): object;
}

/** Returns the number of characters that an event adds to the response. */
export function charactersSaid(event: AnswerEvent): number {
  switch (event.kind) {
    case "text":
      return event.text.length + (event.logprobs === undefined ? 0 : JSON.stringify(event.logprobs).length);
    case "reasoning":
      return event.text.length;
    case "tool-call-start":
      return event.name.length + (event.id?.length ?? 0);
    case "tool-call-delta":
      return event.arguments.length;
    default:
      return 0;
  }
}

interface Called extends FunctionName {
  /** The id by which the client sends the function's output back. */
  readonly id: string;
}

/** An output item: a function call by the model. */
export class CallItem implements OutputItem {
  readonly #id = newToken("fc_");
  readonly #index: number;
  readonly #called: Called;
  readonly #tell: Tell;
  #arguments = "";
  #status: ItemStatus = "in_progress";

  constructor(called: Called, index: number, tell: Tell) {
    this.#called = called;
    this.#index = index;
    this.#tell = tell;
    tell("response.output_item.added", { output_index: index, item: this.told() });
  }

  add(delta: string): void {
    this.#arguments += delta;
    this.#tell("response.function_call_arguments.delta", { ...this.#place(), delta });
  }

  end(status: ItemStatus): void {
    this.#status = status;
    const { name } = this.#called;
    this.#tell("response.function_call_arguments.done", { ...this.#place(), name, arguments: this.#arguments });
    this.#tell("response.output_item.done", { output_index: this.#index, item: this.told() });
  }

  told(): object {
    const { id: call_id, name, namespace } = this.#called;
    const standing = { id: this.#id, status: this.#status, type: "function_call", call_id };
    return { ...standing, namespace, name, arguments: this.#arguments };
  }

  #place(): object {
    return { item_id: this.#id, output_index: this.#index };
  }
}

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
