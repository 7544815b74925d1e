import { takeOutLongTexts, type ShortJson } from "#shared/process/long-texts.ts";
import { chatBody, type ChatBody } from "#shared/protocol/chat-body.ts";
import { isPlainChatBody } from "#shared/protocol/plain-chat-body.ts";
import { longMessages } from "../runtimes/long-messages.ts";
import { readBody } from "./read-body.ts";

/** Up to this size a body is read whole sooner than its long texts are taken out. */
const wholeBytesMax = 16 * 1024;

/** Reads the body of a chat. The long texts of a plain one are left as they are written until somebody needs them. */
export function readChatBody(bytes: Uint8Array): ChatBody {
  return readLong(bytes) ?? readBody(chatBody, bytes, isPlainChatBody);
}

/** Nothing where it is not plain: the whole is to be read then. */
function readLong(bytes: Uint8Array): ChatBody | undefined {
  if (bytes.byteLength <= wholeBytesMax) return undefined;
  const short = takeOutLongTexts(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const body = short && parsed(short);
  if (!isPlainChatBody(body)) return undefined;
  const messages = longMessages({ messages: body.messages, texts: short?.texts ?? [] });
  return messages && { ...body, messages };
}

function parsed({ json }: ShortJson): unknown {
  try {
    return JSON.parse(json.toString());
  } catch {
    return undefined;
  }
}
