import { Fault } from "#shared/fault/fault.ts";
import { placesOfLongTexts, takeOutLongTexts, type ShortJson } from "#shared/process/long-texts.ts";
import { chatBody, type ChatBody } from "#shared/protocol/chat-body.ts";
import { isPlainChatBody } from "#shared/protocol/plain-chat-body.ts";
import { longMessages } from "../runtimes/long-messages.ts";
import { readBody } from "./read-body.ts";

/** Up to this size a body is read whole sooner than its long texts are taken out. */
const wholeBytesMax = 16 * 1024;

/** The fields of a message, and of what it consists of, whose long texts are left as they are written. */
const fieldsLeft = ["content", "text", "url"];

/** Reads the body of a chat. The long texts of its messages are left as they are written until somebody needs them. */
export function readChatBody(bytes: Uint8Array): ChatBody {
  return readLong(bytes) ?? readBody(chatBody, bytes, isPlainChatBody);
}

/** Nothing where there is no such text, or what is left is not right: the whole is to be read then. */
function readLong(bytes: Uint8Array): ChatBody | undefined {
  if (bytes.byteLength <= wholeBytesMax) return undefined;
  const short = takeOutLongTexts(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), fieldsLeft);
  const body = short && bodyWithout(short);
  if (body === undefined) return undefined;
  const messages = longMessages({ messages: body.messages, texts: short?.texts ?? [] });
  return messages && { ...body, messages };
}

function bodyWithout({ json, texts }: ShortJson): ChatBody | undefined {
  try {
    const body = readBody(chatBody, json, isPlainChatBody);
    // A schema may have such fields too, and anything may say the stand-in, where nobody looks for a text; a plain chat has neither.
    const isSure = isPlainChatBody(body) || placesOfLongTexts(JSON.stringify(body)) === texts.length;
    return isSure ? body : undefined;
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}
