import type { ChatMessage } from "#shared/protocol/chat-body.ts";
import { modelIdCharactersMax } from "#shared/model/model.ts";
import type { ReadChatRequest } from "./chat-request.ts";

type Body = ReadChatRequest["body"];

/** The number fields that are copied unchanged, with the minimum and the maximum of each. */
const ranges: Readonly<Record<string, readonly [number, number]>> = {
  temperature: [0, 2],
  top_p: [0, 1],
  frequency_penalty: [-2, 2],
  presence_penalty: [-2, 2],
};
const wholeRanges: Readonly<Record<string, readonly [number, number]>> = {
  max_tokens: [1, Number.MAX_SAFE_INTEGER],
  max_completion_tokens: [1, Number.MAX_SAFE_INTEGER],
  seed: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  n: [1, 128],
};

/**
 * Reads a plain chat request: messages of text, and number fields. Nearly all requests are plain. The result is exactly
 * that of the schema, in a fraction of the time. Returns undefined for any other request, and for one that may be
 * invalid: the schema reads it and explains the error.
 */
export function readPlainChat(input: Record<string, unknown>, messagesMax: number): ReadChatRequest | undefined {
  const { model, messages, stream = false, stream_options: options } = input;
  if (typeof model !== "string" || model.length === 0 || model.length > modelIdCharactersMax) return undefined;
  if (!model.isWellFormed() || typeof stream !== "boolean") return undefined;
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > messagesMax) return undefined;
  if (!messages.every(isPlainMessage)) return undefined;
  const numbers: Record<string, number> = {};
  for (const field in input) {
    if (asked.has(field)) continue;
    const value = input[field];
    if (!isNumberOf(field, value)) return undefined;
    numbers[field] = value;
  }
  const { max_completion_tokens: current, ...same } = numbers;
  if (current !== undefined) {
    if (same["max_tokens"] !== undefined && same["max_tokens"] !== current) return undefined;
    same["max_tokens"] = current;
  }
  const includeUsage = options === undefined ? false : stream ? usageWished(options) : undefined;
  if (includeUsage === undefined) return undefined;
  const body: Body = { ...same, messages };
  return { model, stream, includeUsage, body, imageParam: undefined, ignored: [] };
}

/** The fields that `readPlainChat` reads one by one. */
const asked: ReadonlySet<string> = new Set(["model", "messages", "stream", "stream_options"]);

function isNumberOf(field: string, value: unknown): value is number {
  if (typeof value !== "number") return false;
  const range = ranges[field];
  if (range !== undefined) return value >= range[0] && value <= range[1];
  const whole = wholeRanges[field];
  return whole !== undefined && Number.isSafeInteger(value) && value >= whole[0] && value <= whole[1];
}

function isPlainMessage(message: unknown): message is ChatMessage {
  if (typeof message !== "object" || message === null) return false;
  let fields = 0;
  for (const field in message) {
    if (field !== "role" && field !== "content") return false;
    fields += 1;
  }
  if (fields !== 2) return false;
  const { role, content } = message as { readonly role: unknown; readonly content: unknown };
  return typeof content === "string" && (role === "user" || role === "assistant" || role === "system");
}

/** Returns `include_usage` (false when missing). Returns undefined when `stream_options` is not plain. */
function usageWished(options: unknown): boolean | undefined {
  if (typeof options !== "object" || options === null || Array.isArray(options)) return undefined;
  const entries = Object.entries(options);
  const [first] = entries;
  if (first === undefined) return false;
  const [field, value] = first;
  return entries.length === 1 && field === "include_usage" && typeof value === "boolean" ? value : undefined;
}
