import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { eventStream } from "../../../../services/gateway/apis/media/media-request.ts";
import { readResponseRequest } from "../../../../services/gateway/apis/responses/response-request.ts";
import type { OllamaTerms } from "../../../../services/gateway/apis/ollama/ollama-request.ts";
import { rendererOf, renderingOf } from "../../../harness/read-requests.ts";
import { apis } from "../../../../services/gateway/apis/apis.ts";
import { publicDocument } from "../../../../services/gateway/openapi/public-document.ts";
import { finish as end, says, thinks, usage } from "../../answer/events.ts";
import { DescribedApi } from "../../../harness/described-api.ts";

const api = new DescribedApi(publicDocument({ bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" }));

const likely = { token: "Hi", logprob: -0.5, bytes: [72, 105] };
const timings = { queuedMs: 1, firstTokenMs: 2, totalMs: 3, loadMs: 0 };
const logprobs = [{ ...likely, top_logprobs: [likely, { token: "\ufffd", logprob: -3, bytes: null }] }];

/** All that a runtime may say of a conversation: what no demonstration says is said here. */
const conversation: AnswerEvent[] = [
  thinks("Hm."),
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

const oneAnswer: AnswerEvent[] = [
  { kind: "tool-call-start", index: 1, id: "call_2", name: "home__open" },
  ...conversation.filter((event) => !("choice" in event)),
];
const cutShort = text.slice(0, 2);

const scores: AnswerEvent[] = [
  { kind: "scores", scores: [-1.5, 0.5] },
  { kind: "usage", promptTokens: 4, completionTokens: 0 },
];
const transcript = [says('{"text":"Hello."}')];
const spoken = [says("Hello."), end];
const sound: AnswerEvent[] = [{ kind: "audio", bytes: Buffer.from("Hello.") }, end];

/** Every form of an answer, whole and in pieces where it has both: its kind, its form, its schema and what a runtime says. */
const told: Record<string, readonly [kind: string, form: unknown, schema: string, events: AnswerEvent[]]> = {
  "response-stream": ["response", { terms: termsWith(null) }, "ResponseEvent", oneAnswer],
  "response-whole": ["response", { terms: termsWith(null) }, "Response", oneAnswer],
  "summarised-response-stream": ["response", { terms: termsWith("auto") }, "ResponseEvent", oneAnswer],
  "summarised-response-whole": ["response", { terms: termsWith("auto") }, "Response", oneAnswer],
  "message-stream": ["message", {}, "MessageEvent", oneAnswer],
  "message-whole": ["message", {}, "Message", oneAnswer],
  "chat-stream": ["chat", { custom: [], includeUsage: true }, "ChatCompletionChunk", conversation],
  "chat-whole": ["chat", { custom: [], includeUsage: true }, "ChatCompletion", conversation],
  "custom-chat-stream": ["chat", { custom: ["get_weather"], includeUsage: true }, "ChatCompletionChunk", conversation],
  "custom-chat-whole": ["chat", { custom: ["get_weather"], includeUsage: true }, "ChatCompletion", conversation],
  "text-stream": ["completion", { includeUsage: true }, "TextCompletionChunk", text],
  "text-whole": ["completion", { includeUsage: true }, "TextCompletion", text],
  "ollama-chat-lines": [...asOllama("chat"), "OllamaChatAnswer", oneAnswer],
  "ollama-chat-whole": [...asOllama("chat"), "OllamaChatAnswer", oneAnswer],
  "ollama-prompt-lines": [...asOllama("generate"), "OllamaPromptAnswer", cutShort],
  "ollama-prompt-whole": [...asOllama("generate"), "OllamaPromptAnswer", cutShort],
  "ollama-vectors": [...asOllama("embed"), "OllamaVectors", vectors],
  "ollama-vector": [...asOllama("embeddings"), "OllamaVector", vectors.slice(0, 1)],
  "embeddings-float": ["embeddings", "float", "EmbeddingList", vectors],
  "embeddings-base64": ["embeddings", "base64", "EmbeddingList", vectors],
  ranking: ["rerank", {}, "Ranking", scores],
  scores: ["score", {}, "ScoreList", scores],
  media: ["translation", { form: "json", type: "application/json" }, "Transcription", transcript],
  "transcript-stream": ["transcription", { form: "transcript", type: eventStream }, "TranscriptionEvent", spoken],
  "speech-stream": ["speech", { form: "audio", type: eventStream }, "SpeechEvent", sound],
};

function rendered(shape: string, other: { includeUsage?: boolean; events?: AnswerEvent[] } = {}): unknown[] {
  const head = { id: "id", createdSeconds: 1, model: "a" };
  const [kind = "", form, , said = []] = told[shape] ?? [];
  const { includeUsage = true, events = said } = other;
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
  const shown = new Set(Object.values(told).map(([kind]) => kind));
  const prefixesOf = (kinds: (kind: string) => boolean) =>
    new Set(prefixes.flatMap(([kind, prefix]) => (kinds(kind) ? [prefix] : [])));
  expect(prefixesOf((kind) => shown.has(kind))).toEqual(prefixesOf(() => true));
});

test.each(Object.entries(told))(
  "%s holds nothing that is not described, and its description fits nothing else",
  (shape, [, , schema, events]) => {
    const $ref = `#/components/schemas/${schema}`;
    const shorter = events === oneAnswer || events === cutShort ? { events: cutShort } : { includeUsage: false };
    const objects = [...rendered(shape), ...rendered(shape, shorter)];
    expect(objects.length).toBeGreaterThan(1);
    for (const each of objects) expect(api.misfits({ $ref }, each)).toEqual([]);
    for (const each of rendered(shape)) expect(api.misfits({ $ref }, { ...Object(each), more: 1 })).not.toEqual([]);
    expect(api.misfits({ $ref }, {})).not.toEqual([]);
  },
);
