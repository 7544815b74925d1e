import type { z } from "zod";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { linesMedia } from "#shared/model/manage-line.ts";

/** One thing that the admin API does. Its route is mounted from this, and its document is written from it. */
export interface AdminOperation<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below the prefix of the API, with what it names in braces. */
  readonly path: string;
  readonly summary: string;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly answer: Answer;
  readonly status: 200 | 201;
  /** What the answer is sent as where it is not one JSON object: then it is many, each of the answer's schema. */
  readonly media?: typeof linesMedia;
  /** What it may refuse beside what every operation does. */
  readonly refusals: readonly FaultCode[];
  /** A body that shows how to use it. It holds no secret. */
  readonly example?: object;
}
