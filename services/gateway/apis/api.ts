import type { FastifyInstance, onRequestHookHandler } from "fastify";
import type { BodyLimit } from "../http/answer-faults.ts";
import type { FaultShape } from "../http/request-state.ts";
import type { Captures } from "../capture/captures.ts";
import type { AnswerMeter } from "../jobs/answer-parts.ts";
import type { ContinuationRoom } from "../jobs/continue-answer.ts";
import type { LiveModels } from "../jobs/live-models.ts";
import type { OpenedLimits } from "../limits/open-limits.ts";
import type { Endpoint, InferenceDependencies } from "../requests/endpoint.ts";
import type { SettleParts } from "../requests/settle.ts";
import type { ApiDescription } from "./description.ts";
import type { MachineRanking } from "../routing/rank-machines.ts";

/** An outer API. Its folder exports this as `api`, and the readers of its requests as `reads`. */
export interface Api {
  /** The path before those of its endpoints. The APIs at `/v1` are at `/console/v1` too. */
  readonly prefix: "/v1" | "/api" | "";
  /** The endpoints that ask models. */
  readonly endpoints: readonly Endpoint[];
  /** Adds its other endpoints to a scope, which asks for a key. */
  readonly others?: (scope: FastifyInstance, parts: ApiParts) => void;
  /** Called with a request to one of its `endpoints` before the body is read. */
  readonly beforeBody?: onRequestHookHandler;
  /** The shape of its errors; OpenAI's unless given. */
  readonly faults?: FaultShape;
  /** Its sections of the description of all APIs. */
  readonly descriptions: readonly ApiDescription[];
}

/** The parts that the APIs are made of. */
export interface ApiParts extends BodyLimit, InferenceDependencies {
  readonly limited: OpenedLimits;
  readonly keepsRequests: boolean;
  readonly history: SettleParts["history"];
  readonly models: LiveModels;
  readonly ranking: MachineRanking;
  readonly meter: AnswerMeter;
  readonly continuations: ContinuationRoom | undefined;
  /** Absent where no content of requests is captured. */
  readonly captures?: Captures | undefined;
}
