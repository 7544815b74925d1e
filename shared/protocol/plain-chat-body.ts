import type { ChatBody, ChatMessage } from "./chat-body.ts";

/** The numbers of a chat that may be plain, with the least and the most that each may be. */
const ranges: ReadonlyMap<string, readonly [least: number, most: number]> = new Map([
  ["temperature", [0, 2]],
  ["top_p", [0, 1]],
  ["frequency_penalty", [-2, 2]],
  ["presence_penalty", [-2, 2]],
]);
const wholeRanges: ReadonlyMap<string, readonly [least: number, most: number]> = new Map([
  ["max_tokens", [1, Number.MAX_SAFE_INTEGER]],
  ["seed", [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]],
  ["n", [1, 128]],
]);

/**
 * Whether this is the body of a chat as nearly all are: messages of text, and numbers. The schema would take each such
 * body as it is, in many times the time; what is not as plain, or may be wrong, is for the schema to read and to explain.
 */
export function isPlainChatBody(value: unknown): value is ChatBody {
  if (typeof value !== "object" || value === null) return false;
  const body = value as Readonly<Record<string, unknown>>;
  for (const field in body) if (field !== "messages" && !isPlainNumber(field, body[field])) return false;
  const messages = body["messages"];
  return Array.isArray(messages) && messages.length > 0 && messages.every(isPlainMessage);
}

function isPlainNumber(field: string, value: unknown): boolean {
  if (typeof value !== "number") return false;
  const whole = wholeRanges.get(field);
  const range = whole ?? ranges.get(field);
  if (range === undefined || (whole !== undefined && !Number.isSafeInteger(value))) return false;
  return value >= range[0] && value <= range[1];
}

/** A message of a text by someone who may say nothing but text, or who says nothing else here. */
function isPlainMessage(message: unknown): message is ChatMessage {
  if (typeof message !== "object" || message === null) return false;
  for (const field in message) if (field !== "role" && field !== "content") return false;
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown };
  return typeof content === "string" && (role === "user" || role === "assistant" || role === "system");
}
