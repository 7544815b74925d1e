import type { JobKind } from "#shared/protocol/job.ts";
import type { Needs } from "../dispatch/choose-machine.ts";
import type { ResponseTerms } from "../openai/responses/response-terms.ts";

/** What a request asks of a model, once its shape is known to be right. All of it is data: it may be read elsewhere. */
export interface Asked {
  readonly kind: JobKind;
  readonly model: string;
  readonly needs: Needs;
  /** The body of its job, and the hash of one that goes in parts. */
  readonly body: Uint8Array;
  readonly sha256: string | undefined;
  /** Whether the answer is to come piece by piece, and in which shape. */
  readonly stream: boolean;
  readonly shape: string;
  readonly includeUsage: boolean;
  /** What the id of the answer begins with. */
  readonly idPrefix: string;
  /** Fields of the request that mean nothing here. */
  readonly ignored: readonly string[];
  /** Of a response, what it repeats of its request: it is rendered here, where that is known. */
  readonly terms?: ResponseTerms | undefined;
  /** What its prompt is expected to cost, and all of it at most. */
  readonly promptTokens: number;
  readonly tokens: number;
}
