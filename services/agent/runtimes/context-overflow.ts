import { Fault } from "#shared/fault/fault.ts";
import { contentText, type ChatBody } from "#shared/protocol/job-bodies.ts";

/** Known facts of a prompt that does not fit. A runtime may report both numbers, one or neither. */
export interface Overflow {
  readonly promptTokens?: number | undefined;
  readonly windowTokens?: number | undefined;
}

/** A runtime's refusal of a prompt that is longer than the window, with the numbers that the runtime reported. */
export class ContextOverflow extends Fault {
  readonly overflow: Overflow;

  constructor(overflow: Overflow, internal: string) {
    super("context_length_exceeded", { message: "The prompt is longer than the window.", param: "messages", internal });
    this.overflow = overflow;
  }
}

/** Subject of the overflow message, by the field of the request that was too long. */
const takers = {
  messages: "your messages resulted in",
  input: "a text in 'input' resulted in",
  prompt: "a text in 'prompt' resulted in",
} as const;

/** The input that was too long: the messages of a chat, or a text to embed or to continue. */
export interface TooLong {
  readonly param: keyof typeof takers;
  readonly contextWindow: number;
  /** Estimate by `estimateTokens` or `estimateTextTokens`. */
  readonly estimatedTokens: number;
  /** The token limit of the answer, for a runtime that counts it in. */
  readonly tokensMax?: number | undefined;
}

/**
 * Returns an overflow as the client gets it, always with both numbers, and any other error as it is. A prompt length
 * that the runtime did not report is estimated, and the message says so. A prompt may fit and still leave less room than
 * the answer's limit. Clients recognise an overflow by this wording of OpenAI, and shorten their conversations.
 */
export function tellOverflow(error: unknown, { param, contextWindow, estimatedTokens, tokensMax }: TooLong): unknown {
  if (!(error instanceof ContextOverflow)) return error;
  const { promptTokens, windowTokens = contextWindow } = error.overflow;
  const told = promptTokens ?? `about ${Math.max(estimatedTokens, windowTokens + 1)} (estimated)`;
  const leavesNoRoom = tokensMax !== undefined && promptTokens !== undefined && promptTokens <= windowTokens;
  const end = leavesNoRoom ? `, which leaves no room for the ${tokensMax} of 'max_tokens'.` : ".";
  return new Fault("context_length_exceeded", {
    message: `This model's maximum context length is ${windowTokens} tokens on this machine. However, ${takers[param]} ${told} tokens${end}`,
    param,
    internal: error.internal,
  });
}

/** Rules of thumb for estimates: four bytes of text for a token, and the tokens of an image with most models. */
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
