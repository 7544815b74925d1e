import { textOf, type ScriptedChat } from "./scripted-chat.ts";

/** What came to a client, as its bytes said it. */
export interface Received {
  readonly status: number | undefined;
  /** The text of the answer, of all its events. */
  readonly text: string;
  /** The code of the error that it was told, in the body or in an event. */
  readonly code: string | null | undefined;
  /** What it was told in words, for people. */
  readonly message: string | undefined;
  /** What only a success ends with: `[DONE]`, or the reason of a whole answer's end. */
  readonly success: boolean;
  /** Whether the bytes ended as they should; else the connection broke, which every client notices. */
  readonly closed: boolean;
  readonly retryAfter: string | undefined;
}

/**
 * How a request ended, as its client sees it. `silent` and `foreign` are never allowed: an answer that ends like a success
 * and is none, and one that holds anything but the text that was asked for.
 */
export type Outcome = "exact" | "cut short and told" | "refused" | "broken off" | "silent" | "foreign";

export function judgeAnswer(chat: ScriptedChat, received: Received): Outcome {
  const { status, text, code, success, closed } = received;
  const expected = textOf(chat);
  if (!expected.startsWith(text)) return "foreign";
  if (success) return closed && code === undefined && text === expected ? "exact" : "silent";
  if (status !== undefined && status !== 200 && closed) return code === undefined ? "silent" : "refused";
  if (code !== undefined) return "cut short and told";
  return closed ? "silent" : "broken off";
}
