import { type FaultCode, faultEntry } from "#shared/fault/fault.ts";
import { refTo, type Schema } from "./json-schemas.ts";
import { type PublicOperation, refusalsOfAll } from "./public-api.ts";
import { anthropicStatus, byStatus, openAiStatus, refusedWith, publicCode } from "./public-faults.ts";
import { type AnswerHeaderName, answerHeaders, requestHeaders } from "./public-headers.ts";
import { linesMedia } from "#shared/protocol/model.ts";
import type { SchemaName } from "./public-schemas.ts";

/** The part of OpenAPI's media types and responses that this API uses. */
interface Medium {
  readonly schema: Schema;
  readonly examples?: object;
}
export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content: Readonly<Record<string, Medium>>;
  /** The error codes of this status, as in the table of errors. */
  readonly "x-trunkline-codes"?: readonly (string | null)[];
}

const always: readonly AnswerHeaderName[] = ["x-request-id", "openai-processing-ms"];

/** The description of a stream's last event, after success and after failure. */
const ends: Readonly<Record<NonNullable<PublicOperation["endsBy"]>, string>> = {
  done: "Each event's data is one chunk, after the last of them `[DONE]`. What fails in between is told as an error in place of a chunk, and then no `[DONE]` follows.",
  message:
    "Each event has a name. The last is `message_stop`. What fails in between is told as an event `error`, and nothing follows it. A `ping` keeps the connection alive.",
  line: "Each line is one JSON object, as long as `stream` is not false. The last has `done`. What fails in between is told as an error in place of a line, and nothing follows it.",
  transcript:
    "The last event is `transcript.text.done`. What fails in between is told as an error in place of an event, and nothing follows it.",
  event:
    "Each event has a name and a number. The last is `response.completed`, or `response.incomplete` where the answer was cut short. What fails in between is told as an event `error`, and nothing follows it.",
};

const headerNames = Object.keys(answerHeaders) as AnswerHeaderName[];
/** The headers of a key's rate-limit status. */
const commonHeaders = headerNames.filter((name) => name.startsWith("x-ratelimit-"));

/** A URL may hold any character but encoded control characters. */
const textInPath = { type: "string", pattern: "^[^\\x00-\\x1f\\x7f]+$" };

export function describeOperation(operationId: string, operation: PublicOperation) {
  const { tag, summary, description, open, body, params = {}, query = {} } = operation;
  const inPath = Object.entries(params).map(([name, meaning]) => {
    return { name, in: "path", required: true, description: meaning, schema: textInPath };
  });
  const inQuery = Object.entries(query).map(([name, each]) => ({ name, in: "query", ...each }));
  const inHead = Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }));
  const responses: Record<string, Response> = { 200: success(operation), ...refusals(operation) };
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    ...(open ? { security: [] } : {}),
    parameters: [...inPath, ...inQuery, ...(open ? [] : inHead)],
    ...(body === undefined ? {} : { requestBody: requestBody(body) }),
    responses,
  };
}

function requestBody({ schema, examples }: NonNullable<PublicOperation["body"]>) {
  if (examples === "a form")
    return { required: true, content: { "multipart/form-data": { schema: { $ref: refTo(schema) } } } };
  const content: Record<string, Medium> = { "application/json": { schema: { $ref: refTo(schema) }, examples } };
  return { required: true, content };
}

function success(operation: PublicOperation): Response {
  const { answer, chunk, endsBy = "done", headers } = operation;
  return {
    description:
      chunk === undefined
        ? "Done."
        : endsBy === "line"
          ? `Done. ${ends[endsBy]}`
          : `Done: the answer whole, or with \`stream\` as server-sent events. ${ends[endsBy]} Lines that begin with a colon only keep the connection alive.`,
    headers: headerRefs([...always, ...onceProven(operation), ...headers]),
    content: {
      ...(typeof answer === "object" && "media" in answer
        ? { [answer.media]: { schema: { type: answer.media === "application/json" ? "object" : "string" } } }
        : json(...[answer].flat())),
      ...(chunk === undefined
        ? {}
        : {
            [endsBy === "line" ? linesMedia : "text/event-stream"]: {
              schema: eitherOf(chunk, ...(streamErrors[endsBy] ?? [])),
            },
          }),
    },
  };
}

/** The schema of an error in a stream, where the schema of the stream does not have it. */
const streamErrors: Partial<Record<string, readonly SchemaName[]>> = {
  done: ["Error"],
  transcript: ["Error"],
  line: ["OllamaError"],
};

function refusals(operation: PublicOperation): Record<string, Response> {
  const { refusals: own, otherwise, errors = ["Error"] } = operation;
  const statusOf = errors.every((each) => each === "MessageError") ? anthropicStatus : openAiStatus;
  const responses = byStatus([...refusalsOfAll, ...own], statusOf).map(([status, codes]): [string, Response] => {
    const isOtherwise = otherwise !== undefined && String(otherwise.status) === status;
    const content = json(...(isOtherwise ? [otherwise.schema] : []), ...errors);
    return [
      status,
      {
        description: refusedWith(codes),
        headers: headerRefs([...always, ...headersWith(operation, codes)]),
        content,
        "x-trunkline-codes": [...new Set(codes.map(publicCode))],
      },
    ];
  });
  return Object.fromEntries(responses);
}

/** Returns the headers that an operation adds when the key is valid. */
function onceProven({ open, body }: PublicOperation): readonly AnswerHeaderName[] {
  if (open) return [];
  return body === undefined
    ? commonHeaders
    : [...commonHeaders, "x-trunkline-ignored", "x-trunkline-machine", "x-trunkline-model"];
}

function headersWith(operation: PublicOperation, codes: readonly FaultCode[]): readonly AnswerHeaderName[] {
  const entries = codes.map(faultEntry);
  const waits = entries.some(({ status, retryAfterSeconds }) => status === 429 || retryAfterSeconds !== undefined);
  return [
    ...(entries.some(({ status }) => status === 401) ? (["www-authenticate"] as const) : []),
    ...(codes.every(isAnsweredBeforeKeys) ? [] : onceProven(operation)),
    ...(waits ? (["retry-after"] as const) : []),
    ...(entries.some(({ retry }) => retry === false) ? (["x-should-retry"] as const) : []),
  ];
}

/** True if the fault occurs before a key is accepted. Such an answer has no headers about a key. */
function isAnsweredBeforeKeys(code: FaultCode): boolean {
  const { status } = faultEntry(code);
  return status === 401 || (status < 500 && refusalsOfAll.some((each) => each === code));
}

function headerRefs(names: readonly AnswerHeaderName[]): Record<string, { $ref: string }> {
  const ordered = headerNames.filter((name) => names.includes(name));
  return Object.fromEntries(ordered.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function json(...names: readonly SchemaName[]): Record<string, Medium> {
  const [only] = names;
  const schema = only !== undefined && names.length === 1 ? { $ref: refTo(only) } : eitherOf(...names);
  return { "application/json": { schema } };
}

function eitherOf(...names: readonly SchemaName[]): Medium["schema"] {
  return { anyOf: names.map((name) => ({ $ref: refTo(name) })) };
}
