import { standIn, type LongText } from "#shared/process/long-texts.ts";
import type { ChatMessage } from "#shared/protocol/chat-body.ts";

/** Messages of text, of which the long ones say the stand-in, and these texts in their order. */
export interface ShortMessages {
  readonly messages: readonly ChatMessage[];
  readonly texts: readonly LongText[];
}

/** Where a list of messages has itself without its long texts. A map of weak keys would hold these until all of the heap is gone through. */
const shortened = Symbol("shortened");

/**
 * The messages with their long texts, each of which is read when somebody first looks at it: a runtime that takes messages as
 * they are is given it as it came, and nobody does. Nothing unless every text is that of a message.
 */
export function longMessages(short: ShortMessages): ChatMessage[] | undefined {
  let next = 0;
  const messages = short.messages.map((message) => {
    if (message.content !== standIn) return message;
    const text = short.texts[next];
    next += 1;
    return text === undefined ? message : (new LongMessage(message.role, text) as ChatMessage);
  });
  if (next !== short.texts.length) return undefined;
  return Object.defineProperty(messages, shortened, { value: short });
}

/** The same without their long texts, where they have any that nobody needs to read. */
export function shortMessages(messages: readonly ChatMessage[]): ShortMessages | undefined {
  return (messages as { readonly [shortened]?: ShortMessages })[shortened];
}

/**
 * A message whose text is read when somebody first looks at it. The getter is one for all of them: V8 keeps a getter with the
 * shape of its object, and so with all that it holds, until it goes through all of the heap.
 */
class LongMessage {
  readonly role: ChatMessage["role"];
  declare readonly content: string;
  readonly #text: LongText;
  #read: string | undefined;

  constructor(role: ChatMessage["role"], text: LongText) {
    this.role = role;
    this.#text = text;
    Object.defineProperty(this, "content", LongMessage.#content);
  }

  static readonly #content: PropertyDescriptor & ThisType<LongMessage> = {
    enumerable: true,
    get() {
      return (this.#read ??= this.#text.read());
    },
  };
}
