import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { AnswerHeaderName } from "./answers/answer-headers.ts";
import type { PublicCode } from "./fault-meanings.ts";
import type { SchemaName } from "./public-schemas.ts";

/** One operation of the public API, as its document describes it. */
export interface PublicOperation {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly tag: "Chat" | "Responses" | "Completions" | "Embeddings" | "Models" | "Health" | "Reference";
  readonly summary: string;
  readonly description: string;
  /** True if the operation needs no key. */
  readonly open: boolean;
  /** Descriptions of the path parameters. */
  readonly params?: Readonly<Record<string, string>>;
  readonly body?: { readonly schema: SchemaName; readonly examples: object };
  readonly answer: SchemaName | { readonly media: string };
  /** The schema of one event when the answer is streamed. */
  readonly chunk?: SchemaName;
  /** The end of a successful stream: an event of the answer's own, or `[DONE]`. */
  readonly endsBy?: "event" | "done";
  /** The answer of a status that is neither a success nor an error. */
  readonly otherwise?: { readonly status: number; readonly schema: SchemaName };
  readonly refusals: readonly (FaultCode & PublicCode)[];
  /** The headers of a successful answer, besides those of every successful answer. */
  readonly headers: readonly AnswerHeaderName[];
}
