import { getHeapStatistics } from "node:v8";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";

/** What is left of the heap above this share is for the requests that are under way. */
export const heapShareMax = 0.9;
/** So often the heap is looked at, however many requests come. */
const lookAgainMs = 100;

/** How full the heap of this process is, from 0 to 1. */
export function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}

/**
 * Turns requests to a scope of routes away while the heap is nearly full: a process that runs out of it dies, and takes
 * all others along that it has under way.
 */
export function insistOnHeapRoom(
  scope: FastifyInstance,
  means: { readonly clock: Pick<Clock, "now">; readonly share?: () => number },
): void {
  const { clock, share = heapShare } = means;
  let lookedAtMs = -Infinity;
  let isFull = false;
  scope.addHook("onRequest", (_request, _reply, done) => {
    const nowMs = clock.now();
    if (nowMs - lookedAtMs >= lookAgainMs) {
      lookedAtMs = nowMs;
      isFull = share() > heapShareMax;
    }
    done(isFull ? full() : undefined);
  });
}

function full(): Fault {
  return new Fault("server_is_overloaded", {
    message: `The memory of this gateway is full to ${heapShareMax * 100} % (heapShareMax).`,
  });
}
