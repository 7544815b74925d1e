import type { z } from "zod";
import { Fault, type FaultCode, faultEntry } from "#shared/fault/fault.ts";
import { linesMedia } from "#shared/protocol/model.ts";
import type { Operation } from "../apis/description.ts";
import { error } from "../apis/openai-answers.ts";
import { faultHeaders } from "../http/answer-faults.ts";
import { answered, jsonSchema, parametersIn, refTo, type Schema, sentLeniently } from "./json-schemas.ts";
import { schemaNames, type Section } from "./public-apis.ts";
import { byStatus, faultsOf, openAiStatus, publicCode, refusalsAs, refusedWith } from "./public-faults.ts";
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
const ofBodies = ["x-trunkline-ignored", "x-trunkline-machine", "x-trunkline-model", "x-trunkline-cost"];

/** A URL may hold any character but encoded control characters. */
const textInPath = { type: "string", pattern: "^[^\\x00-\\x1f\\x7f]+$" };

/** Returns the description of an operation, for its path and its method. An endpoint that asks models says its own path. */
export function describeOperation(operation: Operation, api: Section) {
  const { id: operationId, at, method, body, examples } = operation;
  const endpoint = api.endpoints.find(({ kind }) => kind === at);
  const path = endpoint === undefined ? at : api.prefix + endpoint.path;
  const [summary = "", ...sentences] = wordsFor("Operations", operationId).meaning.split(". ");
  const form = endpoint?.takesForm === true ? "multipart/form-data" : jsonMedia;
  const repeats = endpoint?.isResumable === true ? faultsOf("repeats") : [];
  const responses: Record<string, Response> = { 200: success(operation, api), ...refusals(operation, api, repeats) };
  const description = {
    operationId,
    tags: [api.tag],
    summary,
    description: sentences.join(". "),
    ...(api.open && { security: [] }),
    parameters: parametersOf(path, operation, api),
    ...(body && { requestBody: { required: true, content: { [form]: { schema: eitherOf(body), examples } } } }),
    responses,
  };
  return { path, method: method.toLowerCase(), description };
}

function parametersOf(path: string, { query }: Operation, { open }: Section): object[] {
  const steps = path.split("/");
  const inPath = steps.flatMap((step, at) => {
    const description = `The ${steps[at - 1]?.replace(/s$/, "")}'s id.`;
    const named = { name: step.slice(1, -1), in: "path", required: true, description, schema: textInPath };
    return step.startsWith("{") ? [named] : [];
  });
  const inQuery = query ? parametersIn("query", query, sentLeniently) : [];
  const inHead = Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }));
  return [...inPath, ...inQuery, ...(open ? [] : inHead)];
}

function success({ answer, chunk, body, headers = [], media = jsonMedia }: Operation, api: Section): Response {
  const { errors = [error], stream, tag, faults: { idHeader } = {} } = api;
  const inStream = stream === "lines" ? linesMedia : "text/event-stream";
  return {
    description: chunk ? wordsFor("Streams", tag).meaning : "Done.",
    headers: headerRefs([...ofAnswers, ...onceProven(body, api), ...(idHeader ? [idHeader] : []), ...headers]),
    content: {
      [media]: { schema: eitherOf(answer) },
      ...(chunk && { [inStream]: { schema: eitherOf(chunk, ...(stream === "events" ? [] : errors)) } }),
    },
  };
}

function refusals(operation: Operation, api: Section, repeats: readonly FaultCode[]): Record<string, Response> {
  const { body, answer, answersWith, refusedAs = api.refusedAs ?? "job", refusals: own = [] } = operation;
  const { open = false, errors = [error], faults } = api;
  const proven = open ? [] : [...faultsOf("keys"), ...refusalsAs[refusedAs], ...repeats, ...own];
  const codes = [...faultsOf("all"), ...(body ? faultsOf("bodies") : []), ...proven];
  const statusOf = (code: FaultCode) => faults?.status?.({ code }) ?? openAiStatus(code);
  const responses = byStatus(codes, statusOf).map(([status, group]) => {
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
function onceProven(body: z.ZodType | undefined, { open }: Section): readonly string[] {
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
