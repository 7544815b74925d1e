import { type FaultCode, faultEntry } from "#shared/fault/fault.ts";
import { refTo, type Schema } from "./json-schemas.ts";
import { type OperationId, type PublicOperation, publicApi, sections } from "./public-api.ts";
import { anthropicStatus, byStatus, faultsOf, openAiStatus, refusedWith, publicCode } from "./public-faults.ts";
import { type AnswerHeaderName, answerHeaders, requestHeaders } from "./public-headers.ts";
import { mediaEndpoints } from "../apis/media/media-request.ts";
import { linesMedia } from "#shared/protocol/model.ts";
import type { SchemaName } from "./public-schemas.ts";
import { requestExamples } from "./request-examples.ts";

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
const ends = {
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

/** The paths whose requests are forms. */
const formPaths = Object.values(mediaEndpoints).flatMap(({ path, takesForm }) => (takesForm ? [path] : []));

/** A URL may hold any character but encoded control characters. */
const textInPath = { type: "string", pattern: "^[^\\x00-\\x1f\\x7f]+$" };

/** Returns an operation with the properties of its section. */
function placeInSection(operation: PublicOperation) {
  const { path } = operation;
  const found = Object.entries(sections).find(([, { paths }]) => paths.some((each) => path.startsWith(each)));
  if (found === undefined) throw new Error(`The path ${path} belongs to no section of the public API.`);
  const [tag, { open = false, errors = ["Error" as const], endsBy = "done" as const }] = found;
  return { ...operation, tag, open, errors, endsBy };
}
type PlacedOperation = ReturnType<typeof placeInSection>;

/** Returns the description of an operation, for its path and its method. */
export function describeOperation(operationId: OperationId) {
  const operation = placeInSection(publicApi[operationId]);
  const { path, tag, summary, description, open, body, params = {}, query = {} } = operation;
  const inPath = Object.entries(params).map(([name, meaning]) => {
    return { name, in: "path", required: true, description: meaning, schema: textInPath };
  });
  const inQuery = Object.entries(query).map(([name, each]) => ({ name, in: "query", ...each }));
  const inHead = Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }));
  const { method = body === undefined ? "GET" : "POST" } = operation;
  const responses: Record<string, Response> = { 200: success(operation), ...refusals(operation) };
  const described = {
    operationId,
    tags: [tag],
    summary,
    description,
    ...(open ? { security: [] } : {}),
    parameters: [...inPath, ...inQuery, ...(open ? [] : inHead)],
    ...(body === undefined ? {} : { requestBody: requestBody(body, path, requestExamples[operationId]) }),
    responses,
  };
  return { path, method: method.toLowerCase(), described };
}

function requestBody(name: SchemaName, path: string, examples: object | undefined) {
  const media = formPaths.some((each) => each === path) ? "multipart/form-data" : "application/json";
  const content: Record<string, Medium> = { [media]: { schema: { $ref: refTo(name) }, ...(examples && { examples }) } };
  return { required: true, content };
}

function success(operation: PlacedOperation): Response {
  const { answer, chunk, headers = [], errors } = operation;
  const stream = chunk === undefined ? { description: "Done.", content: {} } : streamed(chunk, operation);
  const ofSection = errors.every((each) => each === "MessageError") ? (["request-id"] as const) : [];
  return {
    description: stream.description,
    headers: headerRefs([...always, ...onceProven(operation), ...ofSection, ...headers]),
    content: {
      ...(typeof answer === "object" && "media" in answer
        ? { [answer.media]: { schema: { type: answer.media === "application/json" ? "object" : "string" } } }
        : json(...[answer].flat())),
      ...stream.content,
    },
  };
}

/** Returns the description and the content of a stream. Events with names include their errors in `chunk`. */
function streamed(chunk: SchemaName, { endsBy, errors }: PlacedOperation) {
  const schema = eitherOf(chunk, ...(endsBy === "event" || endsBy === "message" ? [] : errors));
  if (endsBy === "line") return { description: `Done. ${ends.line}`, content: { [linesMedia]: { schema } } };
  const whole = "Done: the answer whole, or with `stream` as server-sent events.";
  const comments = "Lines that begin with a colon only keep the connection alive.";
  return { description: `${whole} ${ends[endsBy]} ${comments}`, content: { "text/event-stream": { schema } } };
}

function refusals(operation: PlacedOperation): Record<string, Response> {
  const { refusals: own, otherwise, errors, open, body } = operation;
  const ofKeys = open ? [] : faultsOf("keys");
  const ofBodies = body === undefined ? [] : faultsOf("bodies");
  const all = [...faultsOf("all"), ...ofKeys, ...ofBodies, ...own];
  const statusOf = errors.every((each) => each === "MessageError") ? anthropicStatus : openAiStatus;
  const responses = byStatus(all, statusOf).map(([status, codes]): [string, Response] => {
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
function onceProven({ open, body }: PlacedOperation): readonly AnswerHeaderName[] {
  if (open) return [];
  return body === undefined
    ? commonHeaders
    : [...commonHeaders, "x-trunkline-ignored", "x-trunkline-machine", "x-trunkline-model"];
}

function headersWith(operation: PlacedOperation, codes: readonly FaultCode[]): readonly AnswerHeaderName[] {
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
  return status === 401 || (status < 500 && faultsOf("all").some((each) => each === code));
}

function headerRefs(names: readonly AnswerHeaderName[]): Record<string, { $ref: string }> {
  const ordered = headerNames.filter((name) => names.includes(name));
  return Object.fromEntries(ordered.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function json(...names: readonly SchemaName[]): Record<string, Medium> {
  return { "application/json": { schema: eitherOf(...names) } };
}

function eitherOf(...names: readonly SchemaName[]): Schema {
  const [first = {}, ...others] = names.map((name) => ({ $ref: refTo(name) }));
  return others.length === 0 ? first : { anyOf: [first, ...others] };
}
