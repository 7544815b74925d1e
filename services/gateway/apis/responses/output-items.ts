import type { TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { customInput } from "../../chats/custom-tools.ts";
import type { CalledTool } from "./response-schema.ts";

/** Emits an event of the stream: its type and its fields. */
export type EmitEvent = (type: string, fields: Readonly<Record<string, unknown>>) => void;

/** The status of an item. When an answer was cut short, its last item is `incomplete`. */
type ItemStatus = "in_progress" | "completed" | "incomplete";

/** The position of an item in the output, and the end of its id. */
export interface ItemPosition {
  readonly index: number;
  readonly name: string;
}

/** An output item of a response. It emits the events of its own progress. */
export abstract class OutputItem {
  protected readonly own: { readonly id: string; status: ItemStatus };
  readonly #index: number;
  readonly #emit: EmitEvent;

  constructor(idPrefix: string, { index, name }: ItemPosition, emit: EmitEvent) {
    this.own = { id: idPrefix + name, status: "in_progress" };
    this.#index = index;
    this.#emit = emit;
  }

  /** Returns the item as the response shows it: at its beginning, or once it has ended. */
  abstract json(): object;
  /** Emits the events of its complete content. */
  protected abstract emitContent(): void;

  end(status: ItemStatus): void {
    this.own.status = status;
    this.emitContent();
    this.emitItem("done", this.json());
  }

  protected emitItem(step: "added" | "done", item: object): void {
    this.#emit(`response.output_item.${step}`, { output_index: this.#index, item });
  }

  /** Emits an event about its content. */
  protected emit(type: string, fields: object): void {
    this.#emit(type, { item_id: this.own.id, output_index: this.#index, ...fields });
  }
}

interface Called extends CalledTool {
  /** The id by which the client sends the tool's output back. */
  readonly id: string;
}

const callKinds = {
  function: { idPrefix: "fc_", type: "function_call", event: "response.function_call_arguments" },
  custom: { idPrefix: "ctc_", type: "custom_tool_call", event: "response.custom_tool_call_input" },
} as const;

/** An output item: a call of a function or of a custom tool. A custom tool gets its text in one piece. */
export class CallItem extends OutputItem {
  readonly #called: Called;
  /** The arguments of a function. For a custom tool the JSON around its text, and at the end the text. */
  #given = "";

  constructor(called: Called, position: ItemPosition, emit: EmitEvent) {
    super(callKinds[called.is].idPrefix, position, emit);
    this.#called = called;
    this.emitItem("added", this.json());
  }

  add(delta: string): void {
    this.#given += delta;
    if (this.#called.is === "function") this.emit(`${callKinds.function.event}.delta`, { delta });
  }

  json(): object {
    const { is, id: call_id, name, namespace } = this.#called;
    const begin = { ...this.own, type: callKinds[is].type, call_id, namespace, name };
    return is === "function" ? { ...begin, arguments: this.#given } : { ...begin, input: this.#given };
  }

  protected emitContent(): void {
    const { is, name } = this.#called;
    const { event } = callKinds[is];
    if (is === "function") return this.emit(`${event}.done`, { name, arguments: this.#given });
    this.#given = customInput(this.#given);
    this.emit(`${event}.delta`, { delta: this.#given });
    this.emit(`${event}.done`, { input: this.#given });
  }
}

/** The differences between text, reasoning and reasoning summary. Some clients read reasoning only as a summary. */
interface TextKind {
  readonly idPrefix: string;
  /** The prefix of the names of its text events; `partEvent` is the prefix of its part's events. */
  readonly event: string;
  readonly partEvent: string;
  /** The index of the part in the item. The item has only one part. */
  readonly indexes: object;
  item(parts: readonly object[]): object;
  part(text: string, logprobs: readonly object[]): object;
}

const kinds = {
  text: {
    idPrefix: "msg_",
    event: "response.output_text",
    partEvent: "response.content_part",
    indexes: { content_index: 0 },
    item: (content) => ({ type: "message", role: "assistant", content }),
    part: (text, logprobs) => ({ type: "output_text", text, annotations: [], logprobs }),
  },
  reasoning: {
    idPrefix: "rs_",
    event: "response.reasoning_text",
    partEvent: "response.content_part",
    indexes: { content_index: 0 },
    item: (content) => ({ type: "reasoning", summary: [], content }),
    part: (text) => ({ type: "reasoning_text", text }),
  },
  summary: {
    idPrefix: "rs_",
    event: "response.reasoning_summary_text",
    partEvent: "response.reasoning_summary_part",
    indexes: { summary_index: 0 },
    item: (summary) => ({ type: "reasoning", summary }),
    part: (text) => ({ type: "summary_text", text }),
  },
} as const satisfies Record<string, TextKind>;

/** An output item of one part: text or reasoning of an answer. */
export class TextItem extends OutputItem {
  readonly is: keyof typeof kinds;
  readonly #kind: TextKind;
  readonly #logprobs: object[] = [];
  #text = "";

  constructor(is: keyof typeof kinds, position: ItemPosition, emit: EmitEvent) {
    super(kinds[is].idPrefix, position, emit);
    this.is = is;
    this.#kind = kinds[is];
    this.emitItem("added", { ...this.own, ...this.#kind.item([]) });
    this.emit(`${this.#kind.partEvent}.added`, { ...this.#kind.indexes, part: this.#part() });
  }

  add(delta: string, logprobs: TokenLogprobs = []): void {
    const likely = logprobs.map(renderedLogprob);
    this.#text += delta;
    this.#logprobs.push(...likely);
    const { event, indexes } = this.#kind;
    this.emit(`${event}.delta`, { ...indexes, delta, ...this.#beside(likely) });
  }

  json(): object {
    return { ...this.own, ...this.#kind.item([this.#part()]) };
  }

  protected emitContent(): void {
    const { event, partEvent, indexes } = this.#kind;
    this.emit(`${event}.done`, { ...indexes, text: this.#text, ...this.#beside(this.#logprobs) });
    this.emit(`${partEvent}.done`, { ...indexes, part: this.#part() });
  }

  /** Returns the fields of its text events besides the text. */
  #beside(logprobs: readonly object[]): object {
    return this.is === "text" ? { logprobs } : {};
  }

  #part(): object {
    return this.#kind.part(this.#text, this.#logprobs);
  }
}

/** Writes a token with its `bytes`, which this API requires, even when they are empty. */
function renderedLogprob({ top_logprobs: others, ...token }: TokenLogprobs[number]): object {
  return { ...withBytes(token), top_logprobs: others.map(withBytes) };
}

function withBytes(token: Omit<TokenLogprobs[number], "top_logprobs">): object {
  return { ...token, bytes: token.bytes ?? [] };
}
