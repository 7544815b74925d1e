import { standIn, type LongText } from "#shared/process/long-texts.ts";
import type { ChatMessage } from "#shared/protocol/chat-body.ts";

/** Messages of which the long texts say the stand-in, and these texts in their order. */
export interface ShortMessages {
  readonly messages: readonly ChatMessage[];
  readonly texts: readonly LongText[];
}

/** Where a list of messages has itself without its long texts. A map of weak keys would hold these until all of the heap is gone through. */
const shortened = Symbol("shortened");

/**
 * The messages with their long texts, each of which is read when somebody first looks at it: a runtime that takes messages as
 * they are is given it as it came, and nobody does. Nothing unless every text is one that is passed on alone: a message's
 * content, or the text or the address of a part that no other is joined with.
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

/** The same without their long texts, where they have any that nobody needs to read. */
export function shortMessages(messages: readonly ChatMessage[]): ShortMessages | undefined {
  return (messages as { readonly [shortened]?: ShortMessages })[shortened];
}

type Part = Exclude<Extract<ChatMessage, { role: "user" }>["content"], string>[number];

function isImage(part: Part): part is Extract<Part, { type: "image_url" }> {
  return part.type === "image_url";
}

/** Where a long text may stand. */
type Field = "content" | "text" | "url";

/**
 * What has a text that is read when somebody first looks at it. The getter is one for all of them: V8 keeps a getter with the
 * shape of its object, and so with all that it holds, until it goes through all of the heap.
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
