import type { FastifyInstance, FastifyRequest } from "fastify";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { Caller } from "../access/caller.ts";
import type { ArrivingBody } from "../intake/upload-room.ts";
import type { Standing } from "../limits/limits.ts";
import type { RequestAccount } from "../settlement/request-account.ts";

/** The state of one request while it runs. Each field belongs to the one file that sets it. */
export interface RequestState {
  /** The id of the request's key, once the key is proved. */
  key: string | undefined;
  /** Code of the fault that the client got. */
  told: FaultCode | undefined;
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
export function carryStates(server: FastifyInstance): void {
  server.decorateRequest("state", null);
}

export function stateOf(request: FastifyRequest): RequestState {
  request.state ??= {
    key: undefined,
    told: undefined,
    reason: undefined,
    caller: undefined,
    account: undefined,
    standing: undefined,
    arriving: undefined,
  };
  return request.state;
}
