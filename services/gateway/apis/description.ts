import type { z } from "zod";
import type { FaultCode } from "#shared/fault/fault.ts";
import type { UnsupportedFields } from "../requests/request-fields.ts";

/** An API's part of `/openapi.json` and `/docs`: operations that share the form of their errors and of their streams. */
export interface ApiDescription {
  readonly tag: string;
  readonly description: string;
  /** True if its operations need no key. */
  readonly open?: true;
  /** The bodies of its errors; those of OpenAI's form unless given. */
  readonly errors?: readonly z.ZodType[];
  /** Its streams; events without names that end with `[DONE]` unless given. */
  readonly stream?: StreamDescription;
  /** The faults of its operations, besides those of all operations, of keys and of bodies; none unless given. */
  readonly refusedAs?: RefusedAs;
  /** The schemas that the document has by name, with a capital letter. */
  readonly schemas: readonly Readonly<Record<string, z.ZodType>>[];
  readonly operations: readonly Operation[];
}

export interface StreamDescription {
  /** The course of a stream and its end, after success and after failure. */
  readonly ends: string;
  /** True if the schema of an event includes the errors. */
  readonly includesErrors?: true;
  /** True if a stream is lines of JSON in place of events. */
  readonly inLines?: true;
}

export type RefusedAs = "chat" | "settings" | "job" | "media" | "count" | "stored" | "machines" | "nothing";

export interface Operation extends OperationWords {
  readonly id: string;
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: z.ZodType;
  readonly answer: Answer;
  /** The schema of an event, where the answer can be streamed. */
  readonly chunk?: z.ZodType | undefined;
}

/** The schemas of an answer, or its media type where it has none. */
export type Answer = z.ZodType | readonly z.ZodType[] | `${string}/${string}`;

/** The words of an operation, and all else but its route and its schemas. */
export interface OperationWords {
  /** Markdown. Its first sentence is the summary. */
  readonly text: string;
  readonly query?: z.ZodObject;
  /** True if the body is a form. */
  readonly takesForm?: boolean | undefined;
  /** Fields that clients may send and that are refused. */
  readonly refuses?: UnsupportedFields;
  /** Example bodies. */
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: object }>>;
  /** Headers of the answer, besides those of every answer of its API. */
  readonly headers?: readonly string[];
  /** The status, besides 200, that has this answer. */
  readonly answersWith?: number;
  /** Its faults, where they are not those of its API. */
  readonly refusedAs?: RefusedAs;
  /** Faults besides those of `refusedAs`. */
  readonly refusals?: readonly FaultCode[];
}

export const get = (id: string, path: string, answer: Answer, words: OperationWords): Operation => ({
  id,
  method: "GET",
  path,
  answer,
  ...words,
});
export const remove = (id: string, path: string, answer: Answer, words: OperationWords): Operation => ({
  id,
  method: "DELETE",
  path,
  answer,
  ...words,
});

type Schemas = readonly [body: z.ZodType, answer: Answer, chunk?: z.ZodType];
export const post = (id: string, path: string, [body, answer, chunk]: Schemas, words: OperationWords): Operation => ({
  id,
  method: "POST",
  path,
  body,
  answer,
  chunk,
  ...words,
});
