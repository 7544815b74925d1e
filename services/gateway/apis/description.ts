import type { z } from "zod";
import type { FaultCode } from "#shared/fault/fault.ts";
import type { UnsupportedFields } from "../requests/request-fields.ts";

/** An API's part of `/openapi.json` and `/docs`: operations that share the form of their errors and of their streams. */
export interface ApiDescription {
  readonly tag: string;
  /** True if its operations need no key. */
  readonly open?: true;
  /** The bodies of its errors; those of OpenAI's form unless given. */
  readonly errors?: readonly z.ZodType[];
  /** `events` if events have names and include the errors, `lines` of JSON; events without names unless given. */
  readonly stream?: "events" | "lines";
  /** The faults of its operations, besides those of all operations, of keys and of bodies; `job` unless given. */
  readonly refusedAs?: RefusedAs;
  /** The schemas that the document has by name, with a capital letter. */
  readonly schemas: readonly Readonly<Record<string, z.ZodType>>[];
  readonly operations: readonly Operation[];
}

export type RefusedAs = "chat" | "settings" | "job" | "media" | "count" | "stored" | "machines" | "nothing";

export interface Operation extends OperationRest {
  readonly id: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** The kind of an endpoint that asks models, or the path of another. */
  readonly at: string;
  readonly body?: z.ZodType;
  readonly answer: DescribedAnswer;
  /** The schema of an event, where the answer can be streamed. */
  readonly chunk?: z.ZodType | undefined;
}

export type DescribedAnswer = z.ZodType | readonly z.ZodType[];

/** Properties that only some operations have. */
export interface OperationRest {
  readonly query?: z.ZodObject;
  /** Fields that clients may send and that are refused. */
  readonly refuses?: UnsupportedFields;
  /** Example bodies. */
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: object }>>;
  /** Headers of the answer, besides those of every answer of its API. */
  readonly headers?: readonly string[];
  /** The media type of the answer; JSON unless given. */
  readonly media?: string;
  /** The status, besides 200, that has this answer. */
  readonly answersWith?: number;
  /** Its faults, where they are not those of its API. */
  readonly refusedAs?: RefusedAs;
  /** Faults besides those of `refusedAs`. */
  readonly refusals?: readonly FaultCode[];
}

const operation =
  (method: Operation["method"]) =>
  (id: string, at: string, answer: DescribedAnswer, rest: OperationRest = {}): Operation => ({
    id,
    method,
    at,
    answer,
    ...rest,
  });
export const get = operation("GET");
export const remove = operation("DELETE");

type Schemas = readonly [body: z.ZodType, answer: DescribedAnswer, chunk?: z.ZodType];
export const post = (id: string, at: string, [body, answer, chunk]: Schemas, rest?: OperationRest): Operation => ({
  ...operation("POST")(id, at, answer, rest),
  body,
  chunk,
});
