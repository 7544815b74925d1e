import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { AnswerHeaderName } from "./answers/answer-headers.ts";
import type { PublicCode } from "./fault-meanings.ts";
import type { SchemaName } from "./public-schemas.ts";

/** One thing that the public API does, as its document describes it. */
export interface PublicOperation {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly tag: "Chat" | "Responses" | "Completions" | "Embeddings" | "Models" | "Health" | "Reference";
  readonly summary: string;
  readonly description: string;
  /** Whether anybody may ask, without a key. */
  readonly open: boolean;
  /** What the path names in braces. */
  readonly params?: Readonly<Record<string, string>>;
  readonly body?: { readonly schema: SchemaName; readonly examples: object };
  readonly answer: SchemaName | { readonly media: string };
  /** One event of the answer where it is asked for as a stream. */
  readonly chunk?: SchemaName;
  /** What tells that a stream has ended well: an event of the answer's own, or `[DONE]`. */
  readonly endsBy?: "event" | "done";
  /** The answer of a status that is no success and yet no error. */
  readonly otherwise?: { readonly status: number; readonly schema: SchemaName };
  readonly refusals: readonly (FaultCode & PublicCode)[];
  /** Headers of its success beside those that all like it have. */
  readonly headers: readonly AnswerHeaderName[];
}
