import type { FaultCode } from "#shared/fault/fault-code.ts";

export type RequestOutcome = "ok" | FaultCode;

/** What is known of a request: its lines in the log and its metrics say the same. */
export interface RequestFacts {
  /** The id of the key that it came with, once that is proved. */
  readonly key?: string | undefined;
  /** As its sender named it. */
  readonly model?: string | undefined;
  readonly streamed?: boolean;
  /** Absent as long as nobody has said how it ends. */
  readonly outcome?: RequestOutcome | undefined;
  readonly answer?: AnswerFacts | undefined;
}

/** How the answer to a request came about. All times are from the request's arrival, unless they say otherwise. */
export interface AnswerFacts {
  /** All that were offered to machines for it, the latest last. */
  readonly jobs: readonly string[];
  /** Who took it, the latest. */
  readonly machine: string | undefined;
  /** The model by its id in that machine's catalogue. */
  readonly model: string | undefined;
  /** How often it went on to another machine after one had taken it. */
  readonly failovers: number;
  readonly acceptedMs: number | undefined;
  readonly firstTokenMs: number | undefined;
  readonly endedMs: number | undefined;
  readonly promptTokens: number;
  readonly completionTokens: number;
}
