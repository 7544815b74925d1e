import { hostname } from "node:os";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { ShownRunning, ToldRunning } from "#shared/requests/running-request.ts";
import type { Settlements } from "../limits/settlements.ts";
import { recordedTextMax, triedMax } from "./record-request.ts";
import { ModelRequest } from "./request.ts";

/** Requests that a gateway tells of at once: they fit into one message between gateways. */
const toldMax = 400;

interface RunningParts {
  readonly settlements: Pick<Settlements, "running">;
  readonly clock: Pick<Clock, "now" | "wall">;
}

/** Returns the requests of this gateway that were admitted and have not ended, by their arrival. */
export function runningHere({ settlements, clock }: RunningParts): ToldRunning {
  const admitted = openRequests(settlements).filter(({ demanded }) => demanded !== undefined);
  const byArrival = admitted.toSorted((one, other) => one.startedAtMs - other.startedAtMs);
  const data = byArrival.slice(0, toldMax).map((request) => showRunning(request, clock));
  return { data, left_out: admitted.length - data.length };
}

/** Cancels a request of this gateway, and returns it. Returns undefined if it does not run here, or does no more. */
export function cancelHere(
  id: string,
  { settlements }: Pick<RunningParts, "settlements">,
): Pick<ModelRequest, "key" | "asked"> | undefined {
  const request = openRequests(settlements).find((each) => each.id === id);
  if (request === undefined || request.leaving.signal.aborted) return undefined;
  request.leaving.abort(cancelledByOperator());
  return request;
}

/** The fault of a request that an operator cancelled. Official clients do not repeat it. */
export function cancelledByOperator(): Fault {
  return new Fault("cancelled_by_operator", {
    message: "An operator of this site cancelled the request. Ask them before you repeat it.",
  });
}

function openRequests({ running }: Pick<Settlements, "running">): ModelRequest[] {
  return [...running].filter((each) => each instanceof ModelRequest).filter(({ isOver }) => !isOver);
}

function showRunning(request: ModelRequest, clock: RunningParts["clock"]): ShownRunning {
  const { id, key, from, asked, answer, startedAtMs } = request;
  const ageMs = Math.max(0, Math.round(clock.now() - startedAtMs));
  return {
    id,
    at: new Date(clock.wall() - ageMs).toISOString(),
    age_ms: ageMs,
    state: answer.stage,
    key: key.id,
    model: asked?.model.slice(0, recordedTextMax) ?? null,
    machine: answer.tried.at(-1)?.offer.chosen.machine ?? null,
    path: from.path,
    streamed: asked?.streamed === true,
    tokens: Math.max(answer.outputTokens, answer.madeTokens),
    gateway: hostname(),
    tried: answer.tried.slice(-triedMax).map(({ offer, fromTokens, code }) => ({
      machine: offer.chosen.machine,
      from_tokens: fromTokens ?? null,
      code: code ?? null,
    })),
  };
}
