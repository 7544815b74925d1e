import { loadMsOf, memoryMbOf } from "#shared/placing/load-estimates.ts";
import { makeRoom } from "#shared/placing/make-room.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import type { MemoryFacts } from "#shared/protocol/presence.ts";

/** The load of a model that a machine has to bring into memory for a request. */
export interface ModelLoad {
  /** Time until it is there. */
  readonly ms: number;
  /** The expected time for the return of the models that make room. Zero if an earlier request began the load. */
  readonly returnMs: number;
  /** True if the request begins the load, and other models make room for it. */
  readonly displaces: boolean;
}

/** The wait of a request for a model that finds no room; about `loadWaitMs`. */
const inVainMs = 300_000;

/**
 * Returns what it costs to load a model on a machine. `isBegun` says that this gateway placed a request there which
 * begins that load. The machine itself decides which models make room, by the same arithmetic.
 */
export function loadCost(model: OfferedModel, memory: MemoryFacts | undefined, isBegun: boolean): ModelLoad {
  const ms = loadMsOf(model);
  if (memory === undefined) return { ms, returnMs: isBegun ? 0 : ms, displaces: !isBegun };
  const { loading, residents, freeMb, totalMb } = memory;
  if (loading?.model === model.id) return { ms: loading.leftMs, returnMs: 0, displaces: false };
  const waitMs = ms + (loading?.leftMs ?? 0);
  if (isBegun) return { ms: waitMs, returnMs: 0, displaces: false };
  const neededMb = Math.min(totalMb, memoryMbOf(model));
  const mayGo = residents.filter(({ isKept }) => isKept !== true);
  const unused = mayGo.filter(({ inUse }) => inUse !== true);
  const room = { neededMb, freeMb };
  const goes =
    makeRoom(unused, room) ?? makeRoom(mayGo, room) ?? (mayGo.length === residents.length ? mayGo : undefined);
  // The models that are kept there leave too little room, so the request would wait in vain.
  if (goes === undefined) return { ms: waitMs + inVainMs, returnMs: 0, displaces: false };
  const returnMs = goes.reduce((sum, each) => sum + each.returnMs, 0);
  return { ms: waitMs, returnMs, displaces: goes.length > 0 };
}
