import { Fault } from "#shared/fault/fault.ts";
import { placesOfLongTexts, takeOutLongTexts, type ShortJson } from "#shared/process/long-texts.ts";
import { chatBody, type ChatBody } from "#shared/protocol/chat-body.ts";
import { isPlainChatBody } from "#shared/protocol/plain-chat-body.ts";
import { longMessages } from "../runtimes/long-messages.ts";
import { readBody } from "./read-body.ts";

/** Up to this size, reading a body whole is faster than taking out its long texts. */
const wholeBytesMax = 16 * 1024;

/** The fields of a message and its parts whose long texts stay as they are written. */
const fieldsLeft = ["content", "text", "url"];

/** Reads the body of a chat. Its messages' long texts stay as they are written until they are read. */
export function readChatBody(bytes: Uint8Array): ChatBody {
  return readLong(bytes) ?? readBody(chatBody, bytes, isPlainChatBody);
}

/** Returns undefined where there is no long text or the rest is invalid; the caller then reads the whole body. */
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
    // A JSON schema may have fields of these names. Any text may equal the stand-in where no long text is looked for. A
    // plain chat has neither.
    const isSure = isPlainChatBody(body) || placesOfLongTexts(JSON.stringify(body)) === texts.length;
    return isSure ? body : undefined;
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}
