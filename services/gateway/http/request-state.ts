import type { FastifyInstance, FastifyRequest } from "fastify";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { Caller } from "../keys/prove-callers.ts";
import type { ArrivingBody } from "./upload-room.ts";
import type { Standing } from "../limits/limits.ts";
import type { RequestFacts } from "../metrics/request-meters.ts";
import type { RequestAccount } from "../api/request-account.ts";

/** The state of one request while it runs. Each field belongs to the one file that sets it. */
export interface RequestState {
  /** The id of the request's key, once the key is proved. */
  key: string | undefined;
  /** Code of the fault that the client got. */
  faultCode: FaultCode | undefined;
  /** Why the request ended in a fault, for the log. */
  reason: string | undefined;
  caller: Caller | undefined;
  /** The account of the request, which knows most of its facts. */
  account: RequestAccount | undefined;
  /** The key's rate-limit status when the request was admitted. */
  standing: Standing | undefined;
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
    caller: undefined,
    account: undefined,
    standing: undefined,
    arriving: undefined,
  };
  return request.state;
}

export function factsOf(request: FastifyRequest): RequestFacts {
  const { account, key, faultCode } = stateOf(request);
  if (account === undefined) return { key, outcome: faultCode };
  const { facts } = account;
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
