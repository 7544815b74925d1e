import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { answerShapes, rendererFor } from "../../../../services/gateway/api/answer-request.ts";
import type { AnswerHead, AnswerRenderer } from "../../../../services/gateway/jobs/answer-course.ts";
import { readResponseRequest } from "../../../../services/gateway/api/responses/response-request.ts";
import { ResponseStream, WholeResponse } from "../../../../services/gateway/api/responses/render-response.ts";
import { renderOllama } from "../../../../services/gateway/api/ollama/render-ollama.ts";
import { MessageStream, WholeMessage } from "../../../../services/gateway/api/messages/render-message.ts";
import { renderMedia } from "../../../../services/gateway/api/media/render-media.ts";
import { publicDocument } from "../../../../services/gateway/openapi/public-document.ts";
import { DescribedApi } from "../../../harness/described-api.ts";

const api = new DescribedApi(publicDocument({ bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" }));

const likely = { token: "Hi", logprob: -0.5, bytes: [72, 105] };
const timings = { queuedMs: 1, firstTokenMs: 2, totalMs: 3, loadMs: 0 };
const logprobs = [{ ...likely, top_logprobs: [likely, { token: "\ufffd", logprob: -3, bytes: null }] }];
const usage = { kind: "usage", promptTokens: 7, completionTokens: 5, cachedTokens: 3, reasoningTokens: 2 } as const;

/** All that a runtime may say of a conversation: what no demonstration says is said here. */
const conversation: AnswerEvent[] = [
  { kind: "reasoning", text: "Hm." },
  { kind: "text", text: "Hi", logprobs },
  { kind: "tool-call-start", index: 0, id: "call_1", name: "get_weather" },
  { kind: "tool-call-delta", index: 0, arguments: '{"city":"Oslo"}' },
  { kind: "finish", reason: "tool_calls" },
  { kind: "text", choice: 1, text: "No." },
  { kind: "finish", choice: 1, reason: "content_filter" },
  usage,
];
const text: AnswerEvent[] = [
  { kind: "text", text: "Hi", logprobs },
  { kind: "finish", reason: "length" },
  { kind: "text", choice: 1, text: "No." },
  { kind: "finish", choice: 1, reason: "stop" },
  usage,
];
const vectors: AnswerEvent[] = [
  { kind: "embedding", index: 0, vector: [0.5, -1] },
  { kind: "embedding", index: 1, vector: [1, 0] },
  usage,
];

/** A response is one answer, and its stream begins before and ends behind what is said. */
const termsWith = (summary: "auto" | null) =>
  readResponseRequest({
    model: "a",
    input: "Hello",
    instructions: "Be kind.",
    tools: [
      { type: "function", name: "get_weather" },
      { type: "namespace", name: "home", tools: [{ type: "function", name: "open", strict: true }] },
    ],
    tool_choice: { type: "function", name: "get_weather" },
    text: { format: { type: "json_schema", name: "any", schema: {} } },
    reasoning: { effort: "low", summary },
    metadata: { team: "blue" },
  }).terms;
const ofResponses: Record<string, (head: AnswerHead) => AnswerRenderer> = {
  "response-stream": (head) => new ResponseStream(head, termsWith(null)),
  "response-whole": (head) => new WholeResponse(head, termsWith(null)),
  "summarised-response-stream": (head) => new ResponseStream(head, termsWith("auto")),
  "summarised-response-whole": (head) => new WholeResponse(head, termsWith("auto")),
};
const ofMessages: Record<string, (head: AnswerHead) => AnswerRenderer> = {
  "message-stream": (head) => new MessageStream(head),
  "message-whole": (head) => new WholeMessage(head),
};
const asOllama = (shape: "chat" | "generate" | "embed" | "embeddings", streamed: boolean) => (head: AnswerHead) =>
  renderOllama({ shape, model: "a", loads: false }, { streamed }).render(head);
const ofOllama: Record<string, (head: AnswerHead) => AnswerRenderer> = {
  "ollama-chat-lines": asOllama("chat", true),
  "ollama-chat-whole": asOllama("chat", false),
  "ollama-prompt-lines": asOllama("generate", true),
  "ollama-prompt-whole": asOllama("generate", false),
  "ollama-vectors": asOllama("embed", false),
  "ollama-vector": asOllama("embeddings", false),
};
const oneAnswer: AnswerEvent[] = [
  { kind: "tool-call-start", index: 1, id: "call_2", name: "home__open" },
  ...conversation.filter((event) => !("choice" in event)),
];
const cutShort: AnswerEvent[] = [
  { kind: "text", text: "Hi", logprobs },
  { kind: "finish", reason: "length" },
];

const scores: AnswerEvent[] = [
  { kind: "scores", scores: [-1.5, 0.5] },
  { kind: "usage", promptTokens: 4, completionTokens: 0 },
];
const ofMedia: typeof ofOllama = {
  "transcript-stream": (head) => renderMedia({ form: "transcript", type: "text/event-stream" }).render(head),
};

const told: Record<string, { events: AnswerEvent[]; schema: string }> = {
  "response-stream": { events: oneAnswer, schema: "ResponseEvent" },
  "response-whole": { events: oneAnswer, schema: "Response" },
  "summarised-response-stream": { events: oneAnswer, schema: "ResponseEvent" },
  "summarised-response-whole": { events: oneAnswer, schema: "Response" },
  "message-stream": { events: oneAnswer, schema: "MessageEvent" },
  "message-whole": { events: oneAnswer, schema: "Message" },
  "chat-stream": { events: conversation, schema: "ChatCompletionChunk" },
  "chat-whole": { events: conversation, schema: "ChatCompletion" },
  "text-stream": { events: text, schema: "TextCompletionChunk" },
  "text-whole": { events: text, schema: "TextCompletion" },
  "ollama-chat-lines": { events: oneAnswer, schema: "OllamaChatAnswer" },
  "ollama-chat-whole": { events: oneAnswer, schema: "OllamaChatAnswer" },
  "ollama-prompt-lines": { events: cutShort, schema: "OllamaPromptAnswer" },
  "ollama-prompt-whole": { events: cutShort, schema: "OllamaPromptAnswer" },
  "ollama-vectors": { events: vectors, schema: "OllamaVectors" },
  "ollama-vector": { events: vectors.slice(0, 1), schema: "OllamaVector" },
  "embeddings-float": { events: vectors, schema: "EmbeddingList" },
  "embeddings-base64": { events: vectors, schema: "EmbeddingList" },
  ranking: { events: scores, schema: "Ranking" },
  scores: { events: scores, schema: "ScoreList" },
  media: { events: [{ kind: "text", text: '{"text":"Hello."}' }], schema: "Transcription" },
  "transcript-stream": {
    events: [
      { kind: "text", text: "Hello." },
      { kind: "finish", reason: "stop" },
    ],
    schema: "TranscriptionEvent",
  },
};

function rendered(shape: string, { includeUsage = true, events = told[shape]?.events ?? [] } = {}): unknown[] {
  const head = { id: "id", createdSeconds: 1, model: "a", includeUsage };
  const known = answerShapes.find((each) => each === shape);
  const renderer =
    (ofResponses[shape] ?? ofMessages[shape] ?? ofOllama[shape] ?? ofMedia[shape])?.(head) ??
    (known && rendererFor(known, head));
  const bytesOf = [renderer?.push(events) ?? new Uint8Array(), renderer?.end(timings) ?? new Uint8Array()];
  const bytes = Buffer.concat(bytesOf).toString();
  const parts = shape.endsWith("-stream")
    ? bytes.split("\n\n")
    : shape.endsWith("-lines")
      ? bytes.split("\n")
      : [bytes];
  const objects = parts.filter(Boolean);
  return objects.map((event) => JSON.parse(event.replace(/^(?:event: .*\n)?data: /, "")) as unknown);
}

test("every shape that clients get is described", () => {
  const shapes = [
    ...answerShapes,
    ...[ofResponses, ofMessages, ofOllama, ofMedia].flatMap((each) => Object.keys(each)),
  ];
  expect(Object.keys(told).toSorted()).toEqual(shapes.toSorted());
});

describe.each(Object.entries(told))("%s", (shape, { schema }) => {
  const $ref = `#/components/schemas/${schema}`;

  test("holds nothing that is not described", () => {
    const isOllama = shape in ofOllama && !shape.startsWith("ollama-vector");
    const shorter =
      shape in ofResponses || shape in ofMessages || isOllama ? { events: cutShort } : { includeUsage: false };
    const objects = [...rendered(shape), ...rendered(shape, shorter)];
    expect(objects.length).toBeGreaterThan(1);
    for (const each of objects) expect(api.misfits({ $ref }, each)).toEqual([]);
  });

  test("is not described so loosely that anything fits", () => {
    for (const each of rendered(shape)) expect(api.misfits({ $ref }, { ...Object(each), more: 1 })).not.toEqual([]);
    expect(api.misfits({ $ref }, {})).not.toEqual([]);
  });
});
