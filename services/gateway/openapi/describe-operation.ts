import type { z } from "zod";
import { Fault, type FaultCode, faultEntry } from "#shared/fault/fault.ts";
import { linesMedia } from "#shared/protocol/model.ts";
import type { ApiDescription, Operation } from "../apis/description.ts";
import { messageError } from "../apis/messages/describe.ts";
import { error } from "../apis/openai-answers.ts";
import { faultHeaders } from "../http/answer-faults.ts";
import { answered, jsonSchema, refTo, type Schema, sentLeniently } from "./json-schemas.ts";
import { schemaNames } from "./public-apis.ts";
import {
  anthropicStatus,
  byStatus,
  faultsOf,
  openAiStatus,
  publicCode,
  refusalsAs,
  refusedWith,
} from "./public-faults.ts";
import { answerHeaders, requestHeaders } from "./public-headers.ts";
import { wordsFor } from "./words.ts";

/** The part of OpenAPI's responses that this API uses. */
export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content: Readonly<Record<string, { readonly schema: Schema; readonly examples?: object | undefined }>>;
  /** The error codes of this status, as in the table of errors. */
  readonly "x-trunkline-codes"?: readonly (string | null)[];
}

const jsonMedia = "application/json";
const ofAnswers = ["x-request-id", "openai-processing-ms"];
const ofKeys = Object.keys(answerHeaders).filter((name) => name.startsWith("x-ratelimit-"));
const ofBodies = ["x-trunkline-ignored", "x-trunkline-machine", "x-trunkline-model"];

/** A URL may hold any character but encoded control characters. */
const textInPath = { type: "string", pattern: "^[^\\x00-\\x1f\\x7f]+$" };

/** Returns the description of an operation of an API. */
export function describeOperation(operation: Operation, api: ApiDescription) {
  const { id: operationId, body, takesForm = false, examples } = operation;
  const [summary = "", ...sentences] = wordsFor("Operations", operationId).meaning.split(". ");
  const form = takesForm ? "multipart/form-data" : jsonMedia;
  const responses: Record<string, Response> = { 200: success(operation, api), ...refusals(operation, api) };
  return {
    operationId,
    tags: [api.tag],
    summary,
    description: sentences.join(". "),
    ...(api.open && { security: [] }),
    parameters: parametersOf(operation, api),
    ...(body && { requestBody: { required: true, content: { [form]: { schema: eitherOf(body), examples } } } }),
    responses,
  };
}

function parametersOf({ path, query }: Operation, { open }: ApiDescription): object[] {
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
  return [...inPath, ...inQuery, ...(open ? [] : inHead)];
}

function success({ answer, chunk, body, headers = [], media = jsonMedia }: Operation, api: ApiDescription): Response {
  const { errors = [error], stream, tag } = api;
  const inStream = stream === "lines" ? linesMedia : "text/event-stream";
  const ofApi = isForMessages(api) ? ["request-id"] : [];
  return {
    description: chunk ? wordsFor("Streams", tag).meaning : "Done.",
    headers: headerRefs([...ofAnswers, ...onceProven(body, api), ...ofApi, ...headers]),
    content: {
      [media]: { schema: eitherOf(answer) },
      ...(chunk && { [inStream]: { schema: eitherOf(chunk, ...(stream === "events" ? [] : errors)) } }),
    },
  };
}

function isForMessages({ errors = [] }: ApiDescription): boolean {
  return errors.length === 1 && errors[0] === messageError;
}

function refusals({ body, answer, answersWith, ...own }: Operation, api: ApiDescription): Record<string, Response> {
  const { open = false, errors = [error], refusedAs = "nothing" } = api;
  const codes = [
    ...faultsOf("all"),
    ...(open ? [] : faultsOf("keys")),
    ...(body ? faultsOf("bodies") : []),
    ...refusalsAs[own.refusedAs ?? refusedAs],
    ...(own.refusals ?? []),
  ];
  const responses = byStatus(codes, isForMessages(api) ? anthropicStatus : openAiStatus).map(([status, group]) => {
    const isEarly = group.every((code) => isAnsweredBeforeKeys(code));
    const response: Response = {
      description: refusedWith(group),
      headers: headerRefs([...ofAnswers, ...(isEarly ? [] : onceProven(body, api)), ...group.flatMap(headersWith)]),
      content: { [jsonMedia]: { schema: eitherOf(...(String(answersWith) === status ? [answer] : []), ...errors) } },
      "x-trunkline-codes": [...new Set(group.map(publicCode))],
    };
    return [status, response] as const;
  });
  return Object.fromEntries(responses);
}

/** Returns the headers of every answer to a valid key. */
function onceProven(body: z.ZodType | undefined, { open }: ApiDescription): readonly string[] {
  if (open) return [];
  return body === undefined ? ofKeys : [...ofKeys, ...ofBodies];
}

/** Returns the headers of a fault's answer. A key over its rate is told when it may go on. */
function headersWith(code: FaultCode): readonly string[] {
  const retryAfterSeconds = faultEntry(code).status === 429 ? 1 : undefined;
  return Object.keys(faultHeaders(new Fault(code, { message: "", retryAfterSeconds })));
}

/** True if the fault occurs before a key is accepted. Such an answer has no headers about a key. */
function isAnsweredBeforeKeys(code: FaultCode): boolean {
  const { status } = faultEntry(code);
  return status === 401 || (status < 500 && faultsOf("all").includes(code));
}

function headerRefs(names: readonly string[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function eitherOf(...answers: readonly Operation["answer"][]): Schema {
  const [first = {}, ...others] = answers.flat().map((schema) => {
    const name = schemaNames.get(schema);
    return name === undefined ? jsonSchema(schema, answered) : { $ref: refTo(name) };
  });
  return others.length === 0 ? first : { anyOf: [first, ...others] };
}
