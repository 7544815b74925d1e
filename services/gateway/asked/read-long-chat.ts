import { Fault } from "#shared/fault/fault.ts";
import {
  putInLongTexts,
  standIn,
  takeOutLongTexts,
  type LongText,
  type ShortJson,
} from "#shared/process/long-texts.ts";
import { readJsonObject } from "../intake/read-json.ts";
import { estimateTexts, estimateTokens } from "../limits/estimate-tokens.ts";
import { messagesMax, type ReadChatRequest } from "../openai/chat-request.ts";
import { readPlainChat } from "../openai/plain-chat.ts";
import type { Asked } from "./asked.ts";
import { askedOfChat } from "./asked-of-chat.ts";
import { jobBody } from "./job-body.ts";
import { prefixesOfChat } from "./prompt-prefixes.ts";

/** Up to this size, reading a whole chat is faster than taking its long texts out. */
const wholeBytesMax = 16 * 1024;

/**
 * Reads a plain chat with long texts, without these: they go into the job's body as the client wrote them. Returns
 * exactly what reading the whole chat would, or undefined. A chat that is not as plain, or may be invalid, must be read
 * whole.
 */
export function readLongChat(bytes: Buffer | undefined): Asked | undefined {
  if (bytes === undefined || bytes.byteLength <= wholeBytesMax) return undefined;
  const short = takeOutLongTexts(bytes);
  if (short === undefined) return undefined;
  const request = plainChatIn(short);
  if (request === undefined) return undefined;
  const { model, body } = request;
  const written = putInLongTexts(JSON.stringify(body), short.texts);
  if (written === undefined) return undefined;
  const texts = textsOf(body.messages, short.texts);
  const promptTokens = estimateTexts(texts);
  const tokens = estimateTokens(body, promptTokens);
  const prefixes = prefixesOfChat(model, body, (_, place) => [texts[place] ?? ""]);
  return askedOfChat(request, { promptTokens, tokens, prefixes, ...jobBody(written) });
}

function plainChatIn({ json }: ShortJson): ReadChatRequest | undefined {
  try {
    return readPlainChat(readJsonObject(json), messagesMax);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

/** Returns the text of each message. The texts that were taken out are among them, in their order. */
function textsOf(
  messages: ReadChatRequest["body"]["messages"],
  takenOut: readonly LongText[],
): readonly (string | LongText)[] {
  let next = 0;
  return messages.map(({ content }) => {
    if (content !== standIn) return typeof content === "string" ? content : "";
    next += 1;
    return takenOut[next - 1] ?? "";
  });
}
