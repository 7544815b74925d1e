import type { FastifyRequest } from "fastify";
import type { RequestFacts } from "../meters/request-meters.ts";
import { stateOf } from "./request-state.ts";

export function factsOf(request: FastifyRequest): RequestFacts {
  const { account, key, told } = stateOf(request);
  if (account === undefined) return { key, outcome: told };
  const { facts } = account;
  return facts.outcome === undefined ? { ...facts, outcome: told } : facts;
}

/** Returns the fields that all log lines of a request share, here and on the machine that ran it. */
export function tiesOf(request: FastifyRequest, facts = factsOf(request)): Readonly<Record<string, unknown>> {
  const { key, model, answer } = facts;
  return { request: request.id, key, model, ...jobsOf(answer?.jobs), machine: answer?.machine };
}

/** Returns the log fields for the jobs of a request: the latest as `job`, the others as `earlierJobs`. */
export function jobsOf(jobs: readonly string[] = []): { readonly job?: unknown; readonly earlierJobs?: unknown } {
  return { job: jobs.at(-1), earlierJobs: jobs.length > 1 ? jobs.slice(0, -1) : undefined };
}
