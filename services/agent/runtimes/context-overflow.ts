import { Fault } from "#shared/fault/fault.ts";
import { contentText, type ChatBody } from "#shared/protocol/chat-body.ts";

/** What is known of a prompt that does not fit: a runtime may tell both numbers, one or neither. */
export interface Overflow {
  readonly promptTokens?: number | undefined;
  readonly windowTokens?: number | undefined;
}

/** A runtime's refusal of a prompt that is longer than the window, as far as it said how long they are. */
export class ContextOverflow extends Fault {
  readonly overflow: Overflow;

  constructor(overflow: Overflow, internal: string) {
    super("context_length_exceeded", { message: "The prompt is longer than the window.", param: "messages", internal });
    this.overflow = overflow;
  }
}

/** What takes up the window, by the field that it came in. */
const takers = {
  messages: "your messages resulted in",
  input: "a text in 'input' resulted in",
  prompt: "a text in 'prompt' resulted in",
} as const;

/** What was too long: the messages of a chat, or a text that was to be embedded or continued. */
export interface TooLong {
  readonly param: keyof typeof takers;
  readonly contextWindow: number;
  /** By `estimateTokens` or `estimateTextTokens`. */
  readonly estimatedTokens: number;
}

/** Clients know an overflow by these words of OpenAI's, and cut their conversations short. */
function longest(windowTokens: number): string {
  return `This model's maximum context length is ${windowTokens} tokens`;
}

/** The fault as the caller is told it, with both numbers always: what the runtime did not tell is estimated, and said so. */
export function toldOverflow({ overflow, internal }: ContextOverflow, asked: TooLong): Fault {
  const { promptTokens } = overflow;
  const windowTokens = overflow.windowTokens ?? asked.contextWindow;
  const estimate = `about ${Math.max(asked.estimatedTokens, windowTokens + 1)} (estimated)`;
  const taker = takers[asked.param];
  return new Fault("context_length_exceeded", {
    message: `${longest(windowTokens)} on this machine. However, ${taker} ${promptTokens ?? estimate} tokens.`,
    param: asked.param,
    internal,
  });
}

/**
 * The same where the answer has a limit of its own, which some runtimes count in: a prompt may fit and still leave less
 * room than was asked for.
 */
export function toldNoRoom(
  refusal: ContextOverflow,
  asked: TooLong & { readonly tokensMax?: number | undefined },
): Fault {
  const { param, contextWindow, tokensMax } = asked;
  const { promptTokens, windowTokens = contextWindow } = refusal.overflow;
  if (tokensMax === undefined || promptTokens === undefined || promptTokens > windowTokens) {
    return toldOverflow(refusal, asked);
  }
  return new Fault("context_length_exceeded", {
    message:
      `${longest(windowTokens)} on this machine. However, ${takers[param]} ${promptTokens} tokens, ` +
      `which leaves no room for the ${tokensMax} of 'max_tokens'.`,
    param,
    internal: refusal.internal,
  });
}

/** The rules of thumb of those who have to guess: four bytes of text to a token, and what an image takes with most models. */
const bytesPerToken = 4;
const tokensPerImage = 768;

export function estimateTokens(body: ChatBody): number {
  let bytes = body.tools === undefined ? 0 : Buffer.byteLength(JSON.stringify(body.tools));
  let images = 0;
  for (const { content } of body.messages) {
    bytes += Buffer.byteLength(contentText(content));
    if (Array.isArray(content)) images += content.filter(({ type }) => type === "image_url").length;
  }
  return Math.ceil(bytes / bytesPerToken) + images * tokensPerImage;
}

export function estimateTextTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}
