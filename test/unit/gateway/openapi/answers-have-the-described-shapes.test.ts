import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { eventStream } from "../../../../services/gateway/apis/media/media-request.ts";
import { readResponseRequest } from "../../../../services/gateway/apis/responses/response-request.ts";
import type { OllamaTerms } from "../../../../services/gateway/apis/ollama/ollama-request.ts";
import { rendererOf, renderingOf } from "../../../harness/read-requests.ts";
import { apis } from "../../../../services/gateway/apis/apis.ts";
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
  }).form.terms;
function asOllama(shape: OllamaTerms["shape"]): [kind: string, form: object] {
  return [`ollama-${shape}`, { terms: { shape, model: "a", loads: false } }];
}

/** Every form of an answer, whole and in pieces where it has both. */
const forms: Record<string, readonly [kind: string, form: unknown]> = {
  "response-stream": ["response", { terms: termsWith(null) }],
  "response-whole": ["response", { terms: termsWith(null) }],
  "summarised-response-stream": ["response", { terms: termsWith("auto") }],
  "summarised-response-whole": ["response", { terms: termsWith("auto") }],
  "message-stream": ["message", {}],
  "message-whole": ["message", {}],
  "chat-stream": ["chat", { custom: [], includeUsage: true }],
  "chat-whole": ["chat", { custom: [], includeUsage: true }],
  "custom-chat-stream": ["chat", { custom: ["get_weather"], includeUsage: true }],
  "custom-chat-whole": ["chat", { custom: ["get_weather"], includeUsage: true }],
  "text-stream": ["completion", { includeUsage: true }],
  "text-whole": ["completion", { includeUsage: true }],
  "ollama-chat-lines": asOllama("chat"),
  "ollama-chat-whole": asOllama("chat"),
  "ollama-prompt-lines": asOllama("generate"),
  "ollama-prompt-whole": asOllama("generate"),
  "ollama-vectors": asOllama("embed"),
  "ollama-vector": asOllama("embeddings"),
  "embeddings-float": ["embeddings", "float"],
  "embeddings-base64": ["embeddings", "base64"],
  ranking: ["rerank", {}],
  scores: ["score", {}],
  media: ["translation", { form: "json", type: "application/json" }],
  "transcript-stream": ["transcription", { form: "transcript", type: eventStream }],
  "speech-stream": ["speech", { form: "audio", type: eventStream }],
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
const told: Record<string, { events: AnswerEvent[]; schema: string }> = {
  "response-stream": { events: oneAnswer, schema: "ResponseEvent" },
  "response-whole": { events: oneAnswer, schema: "Response" },
  "summarised-response-stream": { events: oneAnswer, schema: "ResponseEvent" },
  "summarised-response-whole": { events: oneAnswer, schema: "Response" },
  "message-stream": { events: oneAnswer, schema: "MessageEvent" },
  "message-whole": { events: oneAnswer, schema: "Message" },
  "chat-stream": { events: conversation, schema: "ChatCompletionChunk" },
  "chat-whole": { events: conversation, schema: "ChatCompletion" },
  "custom-chat-stream": { events: conversation, schema: "ChatCompletionChunk" },
  "custom-chat-whole": { events: conversation, schema: "ChatCompletion" },
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
  "speech-stream": {
    events: [
      { kind: "audio", bytes: Buffer.from("Hello.") },
      { kind: "finish", reason: "stop" },
    ],
    schema: "SpeechEvent",
  },
};

function rendered(shape: string, { includeUsage = true, events = told[shape]?.events ?? [] } = {}): unknown[] {
  const head = { id: "id", createdSeconds: 1, model: "a" };
  const [kind = "", form] = forms[shape] ?? [];
  const streamed = /-(?:stream|lines)$/.test(shape);
  const own = includeUsage ? form : { ...Object(form), includeUsage };
  const renderer = rendererOf(renderingOf(kind, own, { streamed }), head);
  const bytesOf = [renderer.push(events), renderer.end(timings)];
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
  const prefixes = apis.flatMap(({ endpoints }) => endpoints.map(({ kind, idPrefix }) => [kind, idPrefix] as const));
  const shown = new Set(Object.values(forms).map(([kind]) => kind));
  const prefixesOf = (kinds: (kind: string) => boolean) =>
    new Set(prefixes.flatMap(([kind, prefix]) => (kinds(kind) ? [prefix] : [])));
  expect(prefixesOf((kind) => shown.has(kind))).toEqual(prefixesOf(() => true));
  expect(Object.keys(told).toSorted()).toEqual(Object.keys(forms).toSorted());
});

describe.each(Object.entries(told))("%s", (shape, { schema }) => {
  const $ref = `#/components/schemas/${schema}`;

  test("holds nothing that is not described", () => {
    const hasOneChoice = told[shape]?.events === oneAnswer || told[shape]?.events === cutShort;
    const shorter = hasOneChoice ? { events: cutShort } : { includeUsage: false };
    const objects = [...rendered(shape), ...rendered(shape, shorter)];
    expect(objects.length).toBeGreaterThan(1);
    for (const each of objects) expect(api.misfits({ $ref }, each)).toEqual([]);
  });

  test("is not described so loosely that anything fits", () => {
    for (const each of rendered(shape)) expect(api.misfits({ $ref }, { ...Object(each), more: 1 })).not.toEqual([]);
    expect(api.misfits({ $ref }, {})).not.toEqual([]);
  });
});
