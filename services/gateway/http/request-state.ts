import type { FastifyInstance, FastifyRequest } from "fastify";
import type { FaultCode } from "#shared/fault/fault.ts";
import type { ArrivingBody } from "./upload-room.ts";

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

/** A request whose answer is sent, or will never be. */
export interface EndedRequest {
  /** The URL pattern of the route, which bounds the number of label values. */
  readonly route: string;
  readonly ms: number;
  readonly facts: RequestFacts;
}

/**
 * The state of one request while it runs. Each field belongs to the one file that sets it. Other rooms declare their
 * fields in their own files, by merging this interface.
 */
export interface RequestState {
  /** The id of the request's key, once the key is proved. */
  key: string | undefined;
  /** Code of the fault that the client got. */
  faultCode: FaultCode | undefined;
  /** Why the request ended in a fault, for the log. */
  reason: string | undefined;
  /** Reports the facts of the request, once an account is kept of it. */
  reporter: { readonly facts: RequestFacts } | undefined;
  /** The request's body while it arrives. */
  arriving: ArrivingBody | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Read it through `stateOf` only. */
    state: RequestState | null;
  }
}

/** Adds the `state` field to every request of a server. A map from requests to states would cost more per request. */
export function addRequestState(server: FastifyInstance): void {
  server.decorateRequest("state", null);
}

export function stateOf(request: FastifyRequest): RequestState {
  request.state ??= {
    key: undefined,
    faultCode: undefined,
    reason: undefined,
    reporter: undefined,
    arriving: undefined,
  };
  return request.state;
}

export function factsOf(request: FastifyRequest): RequestFacts {
  const { reporter, key, faultCode } = stateOf(request);
  if (reporter === undefined) return { key, outcome: faultCode };
  const { facts } = reporter;
  return facts.outcome === undefined ? { ...facts, outcome: faultCode } : facts;
}

/** Returns the fields that all log lines of a request share, here and on the machine that ran it. */
export function logFieldsOf(request: FastifyRequest, facts = factsOf(request)): Readonly<Record<string, unknown>> {
  const { key, model, answer } = facts;
  return { request: request.id, key, model, ...jobFieldsOf(answer?.jobs), machine: answer?.machine };
}

/** Returns the log fields for the jobs of a request: the latest as `job`, the others as `earlierJobs`. */
export function jobFieldsOf(jobs: readonly string[] = []): { readonly job?: unknown; readonly earlierJobs?: unknown } {
  return { job: jobs.at(-1), earlierJobs: jobs.length > 1 ? jobs.slice(0, -1) : undefined };
}
