import type { JobKind } from "#shared/protocol/job.ts";
import type { Needs } from "../fleet/choose-machine.ts";
import type { TokenCeiling } from "../limits/token-ceiling.ts";
import type { ResponseTerms } from "../openai/responses/response-terms.ts";

/** A request to a model, once its shape is valid. All of it is plain data: another thread may read the request. */
export interface Asked {
  readonly kind: JobKind;
  readonly model: string;
  readonly needs: Needs;
  /** The body of the job, and the hash of a body that is sent in parts. */
  readonly body: Uint8Array;
  readonly sha256: string | undefined;
  /** True if the answer is streamed; `shape` is the shape of the answer. */
  readonly stream: boolean;
  readonly shape: string;
  readonly includeUsage: boolean;
  /** Prefix of the answer's id. */
  readonly idPrefix: string;
  /** Paths of the request's unknown fields, which are ignored. */
  readonly ignored: readonly string[];
  /**
   * For a response: the parts of its request that the answer repeats. The gateway renders it, because only it has them.
   */
  readonly terms?: ResponseTerms | undefined;
  /** Estimated tokens of the prompt, and of the prompt with the longest answers that the request allows. */
  readonly promptTokens: number;
  readonly tokens: number;
  /** The most tokens that a machine may report for the request; more is not believed. */
  readonly ceiling: TokenCeiling;
}
