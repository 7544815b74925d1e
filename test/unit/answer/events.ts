import { expect } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";

export const says = (text: string): AnswerEvent => ({ kind: "text", text });
export const thinks = (text: string): AnswerEvent => ({ kind: "reasoning", text });

/** A call of the tool that looks at the weather, and a piece of what it is given. */
export const calls = (index: number): AnswerEvent => ({
  kind: "tool-call-start",
  index,
  id: `call_${index}`,
  name: "weather",
});
export const given = (index: number, text: string): AnswerEvent => ({
  kind: "tool-call-delta",
  index,
  arguments: text,
});

export const usage = {
  kind: "usage",
  promptTokens: 7,
  completionTokens: 5,
  cachedTokens: 3,
  reasoningTokens: 2,
} as const;
export const finish: AnswerEvent = { kind: "finish", reason: "stop" };
export const stop: readonly AnswerEvent[] = [finish, usage];

export type Told = Readonly<Record<string, unknown>>;

/** The events of a stream, which all come with their name; a comment may stand before one. */
export function namedEventsIn(bytes: Uint8Array): Told[] {
  const blocks = Buffer.from(bytes).toString().split("\n\n").filter(Boolean);
  return blocks.map((block) => {
    const [, name, data = ""] = /^(?::.*\n)?event: (\S+)\ndata: ([^\r\n]*)$/.exec(block) ?? [];
    const told = JSON.parse(data) as Told;
    expect(told["type"]).toBe(name);
    return told;
  });
}
