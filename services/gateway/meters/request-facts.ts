import type { FaultCode } from "#shared/fault/fault-code.ts";

export type RequestOutcome = "ok" | FaultCode;

/** Facts of a request, shared by its log lines and its metrics. */
export interface RequestFacts {
  /** The id of the request's key, once the key is proved. */
  readonly key?: string | undefined;
  /** The model as the client named it. */
  readonly model?: string | undefined;
  readonly streamed?: boolean;
  /** Absent as long as the outcome is unknown. */
  readonly outcome?: RequestOutcome | undefined;
  readonly answer?: AnswerFacts | undefined;
}

/** How the answer to a request came about. All times are from the request's arrival, unless they say otherwise. */
export interface AnswerFacts {
  /** Ids of the jobs that were offered to machines for the request, the latest last. */
  readonly jobs: readonly string[];
  /** The latest machine that accepted a job of the request. */
  readonly machine: string | undefined;
  /** The model by its id in that machine's catalogue. */
  readonly model: string | undefined;
  /** How often the request went on to another machine after one had accepted it. */
  readonly failovers: number;
  readonly acceptedMs: number | undefined;
  readonly firstTokenMs: number | undefined;
  readonly endedMs: number | undefined;
  readonly promptTokens: number;
  readonly completionTokens: number;
}
