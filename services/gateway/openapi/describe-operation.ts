import type { z } from "zod";
import { type FaultCode, faultEntry } from "#shared/fault/fault.ts";
import { linesMedia } from "#shared/protocol/model.ts";
import { error } from "../apis/openai-answers.ts";
import type { ApiDescription, Operation, StreamDescription } from "../apis/description.ts";
import { messageError } from "../apis/messages/describe.ts";
import { jsonSchema, refTo, type Schema, sentLeniently } from "./json-schemas.ts";
import { nameOf } from "./public-apis.ts";
import {
  refusalsAs,
  anthropicStatus,
  byStatus,
  faultsOf,
  openAiStatus,
  publicCode,
  refusedWith,
} from "./public-faults.ts";
import { answerHeaders, requestHeaders } from "./public-headers.ts";

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

const jsonMedia = "application/json";
const headerNames = Object.keys(answerHeaders);
const ofAnswers = ["x-request-id", "openai-processing-ms"];
const ofKeys = headerNames.filter((name) => name.startsWith("x-ratelimit-"));
const ofBodies = ["x-trunkline-ignored", "x-trunkline-machine", "x-trunkline-model"];

/** A URL may hold any character but encoded control characters. */
const textInPath = { type: "string", pattern: "^[^\\x00-\\x1f\\x7f]+$" };

/** Returns the description of an operation of an API. */
export function describeOperation(operation: Operation, api: ApiDescription) {
  const { id: operationId, path, text, body, query, takesForm = false, examples } = operation;
  const [summary = "", ...sentences] = text.split(". ");
  const steps = path.split("/");
  const inPath = steps.flatMap((step, at) => {
    const description = `The ${steps[at - 1]?.replace(/s$/, "")}'s id.`;
    const named = { name: step.slice(1, -1), in: "path", required: true, description, schema: textInPath };
    return step.startsWith("{") ? [named] : [];
  });
  const inQuery = Object.entries((query && jsonSchema(query, sentLeniently).properties) ?? {}).map(([name, field]) => {
    const { description, ...schema }: Schema = Object(field);
    return { name, in: "query", description, schema };
  });
  const inHead = Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }));
  const medium: Medium | undefined = body && { schema: eitherOf([body]), ...(examples && { examples }) };
  const responses: Record<string, Response> = { 200: success(operation, api), ...refusals(operation, api) };
  return {
    operationId,
    tags: [api.tag],
    summary,
    description: sentences.join(". "),
    ...(api.open && { security: [] }),
    parameters: [...inPath, ...inQuery, ...(api.open ? [] : inHead)],
    ...(medium && {
      requestBody: { required: true, content: { [takesForm ? "multipart/form-data" : jsonMedia]: medium } },
    }),
    responses,
  };
}

const chunks: StreamDescription = {
  ends: "Each event's data is one chunk, after the last of them `[DONE]`. What fails in between is told as an error in place of a chunk, and then no `[DONE]` follows.",
};
const whole = "Done: the answer whole, or with `stream` as server-sent events.";
const comments = "Lines that begin with a colon only keep the connection alive.";

function success({ answer, chunk, body, headers = [] }: Operation, api: ApiDescription): Response {
  const { stream = chunks, errors = [error] } = api;
  const { ends, inLines = false, includesErrors = false } = stream;
  const streamed = inLines ? `Done. ${ends}` : `${whole} ${ends} ${comments}`;
  const [media, schema] =
    typeof answer === "string"
      ? [answer, { type: answer === jsonMedia ? "object" : "string" } as Schema]
      : [jsonMedia, eitherOf([answer].flat())];
  return {
    description: chunk === undefined ? "Done." : streamed,
    headers: headerRefs([
      ...ofAnswers,
      ...onceProven(body, api),
      ...(isForMessages(api) ? ["request-id"] : []),
      ...headers,
    ]),
    content: {
      [media]: { schema },
      ...(chunk && {
        [inLines ? linesMedia : "text/event-stream"]: { schema: eitherOf([chunk, ...(includesErrors ? [] : errors)]) },
      }),
    },
  };
}

function isForMessages({ errors = [] }: ApiDescription): boolean {
  return errors.length === 1 && errors[0] === messageError;
}

function refusals({ body, answer, ...operation }: Operation, api: ApiDescription): Record<string, Response> {
  const { open = false, errors = [error], refusedAs = "nothing" } = api;
  const codes = [
    ...faultsOf("all"),
    ...(open ? [] : faultsOf("keys")),
    ...(body ? faultsOf("bodies") : []),
    ...refusalsAs[operation.refusedAs ?? refusedAs],
    ...(operation.refusals ?? []),
  ];
  const statusOf = isForMessages(api) ? anthropicStatus : openAiStatus;
  const responses = byStatus(codes, statusOf).map(([status, group]): [string, Response] => {
    const own =
      String(operation.answersWith) === status ? [answer].flat().filter((each) => typeof each !== "string") : [];
    return [
      status,
      {
        description: refusedWith(group),
        headers: headerRefs([...ofAnswers, ...headersWith(group, onceProven(body, api))]),
        content: { [jsonMedia]: { schema: eitherOf([...own, ...errors]) } },
        "x-trunkline-codes": [...new Set(group.map(publicCode))],
      },
    ];
  });
  return Object.fromEntries(responses);
}

/** Returns the headers of every answer to a valid key. */
function onceProven(body: z.ZodType | undefined, { open }: ApiDescription): readonly string[] {
  if (open) return [];
  return body === undefined ? ofKeys : [...ofKeys, ...ofBodies];
}

function headersWith(codes: readonly FaultCode[], proven: readonly string[]): readonly string[] {
  const entries = codes.map(faultEntry);
  const waits = entries.some(({ status, retryAfterSeconds }) => status === 429 || retryAfterSeconds !== undefined);
  return [
    ...(entries.some(({ status }) => status === 401) ? ["www-authenticate"] : []),
    ...(codes.every(isAnsweredBeforeKeys) ? [] : proven),
    ...(waits ? ["retry-after"] : []),
    ...(entries.some(({ retry }) => retry === false) ? ["x-should-retry"] : []),
  ];
}

/** True if the fault occurs before a key is accepted. Such an answer has no headers about a key. */
function isAnsweredBeforeKeys(code: FaultCode): boolean {
  const { status } = faultEntry(code);
  return status === 401 || (status < 500 && faultsOf("all").some((each) => each === code));
}

function headerRefs(names: readonly string[]): Record<string, { $ref: string }> {
  const ordered = headerNames.filter((name) => names.includes(name));
  return Object.fromEntries(ordered.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function eitherOf(schemas: readonly z.ZodType[]): Schema {
  const [first = {}, ...others] = schemas.map((schema) => ({ $ref: refTo(nameOf(schema)) }));
  return others.length === 0 ? first : { anyOf: [first, ...others] };
}
