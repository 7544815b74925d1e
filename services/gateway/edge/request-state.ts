import type { FastifyInstance, FastifyRequest } from "fastify";
import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { Caller } from "../access/caller.ts";
import type { Standing } from "../limits/limits.ts";
import type { RequestAccount } from "../settlement/request-account.ts";

/** All that is kept of one request while it is under way. Each field belongs to the one file that sets it. */
export interface RequestState {
  /** The id of the key that it came with, once that is proved. */
  key: string | undefined;
  /** The fault that its sender was told. */
  told: FaultCode | undefined;
  caller: Caller | undefined;
  /** Whoever keeps an account of the request knows most of it. */
  account: RequestAccount | undefined;
  /** How its key stood with its limits when it was let in. */
  standing: Standing | undefined;
  /** Gives back the room that its body was let into. */
  leaveRoom: (() => void) | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    /** To be asked for by `stateOf` alone. */
    state: RequestState | null;
  }
}

/** Lets the requests of a server carry their state themselves: a map from requests to it costs each of them more. */
export function carryStates(server: FastifyInstance): void {
  server.decorateRequest("state", null);
}

export function stateOf(request: FastifyRequest): RequestState {
  request.state ??= {
    key: undefined,
    told: undefined,
    caller: undefined,
    account: undefined,
    standing: undefined,
    leaveRoom: undefined,
  };
  return request.state;
}
