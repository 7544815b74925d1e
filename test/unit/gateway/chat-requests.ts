import type { Fault } from "#shared/fault/fault.ts";
import { readChatRequest } from "../../../services/gateway/apis/chat/chat-request.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

export const hello = { role: "user", content: "Hello" };
export const weather = { type: "function", function: { name: "weather", parameters: { type: "object" } } };
export const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };

/** Reads a request of one friendly message with these fields on top; it is read from JSON, as every request is. */
export function readChat(fields: Readonly<Record<string, unknown>> = {}): ReturnType<typeof readChatRequest> {
  return readChatRequest(JSON.parse(JSON.stringify({ model: "llama3", messages: [hello], ...fields })));
}

/** The fault of such a request, as a client can tell it from others: its code and where it is. */
export function faultOf(fields: Readonly<Record<string, unknown>>): { code: string; param: string | undefined } {
  const { code, param } = thrownBy(fields);
  return { code, param };
}

export function thrownBy(fields: Readonly<Record<string, unknown>>): Fault {
  return faultThrownBy(() => readChat(fields));
}
