import { getHeapStatistics } from "node:v8";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";

/** Share of the heap above which new requests are refused; the rest is for the running ones. */
export const heapShareMax = 0.9;
/** Interval between two readings of the heap, however many requests come. */
const lookAgainMs = 100;

/** Returns the used share of this process's heap, from 0 to 1. */
export function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}

/**
 * Refuses requests to a scope of routes while the heap is nearly full. A process that runs out of heap dies, and all
 * its running requests with it.
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
