import type { ChatBody, ChatMessage } from "./chat-body.ts";

/** Numeric fields that a plain chat may have, each with its least and greatest value. */
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
 * Returns true for a plain chat body: text messages and numbers, as nearly all requests have. The schema would accept
 * each such body unchanged, but takes many times as long. Any other body, valid or not, goes to the schema, which
 * explains errors.
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

/** Returns true for a message of a user, an assistant or a system that holds only a text. */
function isPlainMessage(message: unknown): message is ChatMessage {
  if (typeof message !== "object" || message === null) return false;
  for (const field in message) if (field !== "role" && field !== "content") return false;
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown };
  return typeof content === "string" && (role === "user" || role === "assistant" || role === "system");
}
