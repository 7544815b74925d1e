import type { FastifyRequest } from "fastify";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { RequestFacts } from "../meters/request-facts.ts";

interface Noted {
  key?: string;
  /** The fault that its sender was told. */
  told?: FaultCode;
  /** Whoever keeps an account of the request knows most of it. */
  account?: { readonly facts: RequestFacts };
}

const noted = new WeakMap<FastifyRequest, Noted>();

/** Adds to what is known of a request, for its lines in the log and its metrics. */
export function note(request: FastifyRequest, news: Noted): void {
  const before = noted.get(request);
  if (before === undefined) noted.set(request, news);
  else Object.assign(before, news);
}

export function factsOf(request: FastifyRequest): RequestFacts {
  const { account, key, told } = noted.get(request) ?? {};
  if (account === undefined) return { key, outcome: told };
  const { facts } = account;
  return facts.outcome === undefined ? { ...facts, outcome: told } : facts;
}

/** What ties the lines of the log together that tell of the same request: here, and on the machine that ran it. */
export function tiesOf(request: FastifyRequest, facts = factsOf(request)): Readonly<Record<string, unknown>> {
  const { key, model, answer } = facts;
  const { jobs = [], machine } = answer ?? {};
  const earlierJobs = jobs.length > 1 ? jobs.slice(0, -1) : undefined;
  return { request: request.id, key, model, job: jobs.at(-1), earlierJobs, machine };
}
