import type { z } from "zod";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { linesMedia } from "#shared/model/model.ts";

/** One operation of the admin API. Its route and its documentation are both generated from this. */
export interface AdminOperation<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** The path below the API's prefix, with parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly answer: Answer;
  readonly status: 200 | 201;
  /**
   * The media type of an answer that is a stream of lines, where each line matches `answer`. Undefined for one JSON
   * object.
   */
  readonly media?: typeof linesMedia;
  /** The faults that this operation may return besides those of every operation. */
  readonly refusals: readonly FaultCode[];
  /** An example body. It holds no secret. */
  readonly example?: object;
}
