import { standIn, type LongText } from "#shared/process/long-texts.ts";
import type { ChatMessage } from "#shared/protocol/chat-body.ts";

/** Messages with a stand-in for each long text, and these texts in their order. */
export interface ShortMessages {
  readonly messages: readonly ChatMessage[];
  readonly texts: readonly LongText[];
}

/**
 * Property under which a list of messages keeps its short form. A `WeakMap` would hold the short forms until a full
 * garbage collection.
 */
const shortened = Symbol("shortened");

/**
 * Returns the messages with their long texts, each of which is read on first access. A runtime that takes messages
 * unchanged gets the text as it came, without any access. Returns undefined unless every long text is passed on alone:
 * as a message's content, or as the text or URL of a part that no other part is joined with.
 */
export function longMessages(short: ShortMessages): ChatMessage[] | undefined {
  let next = 0;
  const filled = <T extends object>(holder: T, field: keyof T & Field): T => {
    if (holder[field] !== standIn) return holder;
    const text = short.texts[next];
    next += 1;
    return text === undefined ? holder : (new LongTextIn(holder, { field, text }) as T);
  };
  const messages = short.messages.map((message) => {
    if (!Array.isArray(message.content)) return filled(message, "content");
    if (message.content.length > 1 && !message.content.some(isImage)) return message;
    const content = message.content.map((part) =>
      isImage(part) ? { ...part, image_url: filled(part.image_url, "url") } : filled(part, "text"),
    );
    return { ...message, content } as ChatMessage;
  });
  if (next !== short.texts.length) return undefined;
  return Object.defineProperty(messages, shortened, { value: short });
}

/** Returns the messages without their long texts, if `longMessages` made them. */
export function shortMessages(messages: readonly ChatMessage[]): ShortMessages | undefined {
  return (messages as { readonly [shortened]?: ShortMessages })[shortened];
}

type Part = Exclude<Extract<ChatMessage, { role: "user" }>["content"], string>[number];

function isImage(part: Part): part is Extract<Part, { type: "image_url" }> {
  return part.type === "image_url";
}

/** The field that may hold a long text. */
type Field = "content" | "text" | "url";

/**
 * A message or part whose text is read on first access. All instances share one getter: V8 keeps a getter with the
 * shape of its object. A getter of each instance, and all that it holds, would live until a full garbage collection.
 */
class LongTextIn {
  readonly #text: LongText;
  #read: string | undefined;

  constructor(holder: object, { field, text }: { field: Field; text: LongText }) {
    this.#text = text;
    Object.assign(this, holder);
    Object.defineProperty(this, field, LongTextIn.#property);
  }

  static readonly #property: PropertyDescriptor & ThisType<LongTextIn> = {
    enumerable: true,
    get() {
      return (this.#read ??= this.#text.read());
    },
  };
}
