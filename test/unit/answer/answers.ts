import * as fc from "fast-check";
import type { ChatCompletion, ChatCompletionChunk } from "openai/resources/chat/completions";
import { Stream } from "openai/streaming";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { AnswerAssembly } from "../../../services/agent/jobs/run-job.ts";
import { rendererOf, renderingOf } from "../../harness/read-requests.ts";
import type { AnswerHead, AnswerRenderer } from "../../../services/gateway/jobs/answer-parts.ts";

export const head = { id: "chatcmpl-1", createdSeconds: 1_767_225_600, model: "llama3:8b" };

/** What a runtime says, made regular as an agent does. */
export function regular(events: readonly AnswerEvent[]): AnswerEvent[] {
  const assembly = new AnswerAssembly();
  return [...assembly.push(events), ...assembly.end()];
}

const forms = {
  "chat-stream": ["chat", { custom: [] }],
  "chat-whole": ["chat", { custom: [] }],
  "text-stream": ["completion", {}],
  "text-whole": ["completion", {}],
  "embeddings-float": ["embeddings", "float"],
  "embeddings-base64": ["embeddings", "base64"],
} as const;
export type AnswerShape = keyof typeof forms;

export function rendererFor(shape: AnswerShape, of: AnswerHead, includeUsage = false): AnswerRenderer {
  const [kind, form] = forms[shape];
  const given = typeof form === "string" ? form : { ...form, includeUsage };
  return rendererOf(renderingOf(kind, given, { streamed: shape.endsWith("-stream") }), of);
}

/** The bytes that a client is sent for these events, which come in batches of this size. */
export function rendered(
  shape: AnswerShape,
  events: readonly AnswerEvent[],
  options: { includeUsage?: boolean; batch?: number } = {},
): string {
  const { includeUsage = false, batch = 1 } = options;
  const renderer = rendererFor(shape, head, includeUsage);
  const pieces: Uint8Array[] = [];
  for (let from = 0; from < events.length; from += batch) pieces.push(renderer.push(events.slice(from, from + batch)));
  return Buffer.concat([...pieces, renderer.end()]).toString();
}

/** What follows `data: ` in each event; an event that is anything else is an error. */
export function dataOf(stream: string): string[] {
  const events = stream.split("\n\n");
  if (events.pop() !== "") throw new Error("the stream does not end with an empty line");
  return events.map((event) => {
    if (!/^data: [^\r\n]*$/.test(event)) throw new Error(`this is not one data line: ${JSON.stringify(event)}`);
    return event.slice("data: ".length);
  });
}

/** The chunks as OpenAI's own client reads them. */
export function chunksOf(stream: string): Promise<ChatCompletionChunk[]> {
  const response = new Response(stream, { headers: { "content-type": "text/event-stream" } });
  return Array.fromAsync(Stream.fromSSEResponse<ChatCompletionChunk>(response, new AbortController()));
}

export const wholeOf = (text: string): ChatCompletion => JSON.parse(text);

/** Text with all that could break a line, an event or a string. */
export const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\n", "\r\n\r\n", "\u2028", "\u2029", "\u0085", "data: [DONE]\n\n", '"', "\\", "\ud800", "\0"),
);

/** Any order in which a runtime can rightly say things, up to its finish. */
export const runtimeEvents: fc.Arbitrary<AnswerEvent[]> = fc
  .tuple(
    fc.array(
      fc.record({
        what: fc.constantFrom("text" as const, "reasoning" as const, "call" as const),
        text: anyText,
        call: fc.nat(3),
        id: fc.constantFrom(undefined, "", "call_1", "call_2"),
      }),
      { maxLength: 20 },
    ),
    fc.constantFrom("stop" as const, "length" as const, "tool_calls" as const, "content_filter" as const),
    fc.option(fc.record({ promptTokens: fc.nat(), completionTokens: fc.nat(), cachedTokens: fc.nat() })),
  )
  .map(([steps, reason, usage]) => {
    const indexes = new Map<number, number>();
    const events = steps.map(({ what, text, call, id }): AnswerEvent => {
      if (what !== "call") return { kind: what, text };
      const index = indexes.get(call);
      if (index !== undefined) return { kind: "tool-call-delta", index, arguments: text };
      indexes.set(call, indexes.size);
      const start = { kind: "tool-call-start", index: indexes.size - 1, name: `tool-${call}` } as const;
      return id === undefined ? start : { ...start, id };
    });
    return [...events, { kind: "finish", reason }, ...(usage === null ? [] : [{ kind: "usage" as const, ...usage }])];
  });
