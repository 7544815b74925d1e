import { makeRoom, type ModelMemory, type Resident } from "#shared/placing/make-room.ts";

/** A model of this machine, as far as it decides what is loaded next. */
export interface PlannedModel extends Resident {
  readonly isLoaded: boolean;
  /** True if the site wants it in memory: it is loaded without requests, and makes no room. */
  readonly isKept: boolean;
  readonly loadMs: number;
  readonly running: number;
  readonly waiting: number;
  /** For how long the oldest of its waiting requests waits. */
  readonly waitedMs: number;
  /** For how long it lies in memory, and for how long nobody used it there. */
  readonly loadedForMs: number;
  readonly idleMs: number;
}

export interface LoadStep {
  readonly load: PlannedModel;
  readonly unload: readonly PlannedModel[];
  /** False while a model that has to go still answers. It then begins no further answer. */
  readonly isDue: boolean;
}

/** A model with requests of its own stays for this many of its load times before another one takes its place. */
const turnLoads = 4;

/** The part of its load time for which a model that has just become idle still counts as in use. */
const lingerLoads = 0.25;

/**
 * Decides which model is loaded next, and which ones go for it. The model whose request has waited longest comes first.
 * All requests that wait for a model are answered before it goes, and it stays for `turnLoads` of its load times while it
 * has more: otherwise two models that do not fit together would take turns with every request. No request waits longer
 * for that than twice what the loads of both models take.
 */
export function planLoad(models: readonly PlannedModel[], memory: ModelMemory): LoadStep | undefined {
  const wanted = models.filter(({ isLoaded, isKept, waiting }) => !isLoaded && (waiting > 0 || isKept));
  wanted.sort((one, other) => Number(other.waiting > 0) - Number(one.waiting > 0) || other.waitedMs - one.waitedMs);
  for (const [index, load] of wanted.entries()) {
    const need = { neededMb: Math.min(load.memoryMb, memory.totalMb), freeMb: memory.freeMb };
    // Models in memory make room for the request that has waited longest. Later ones get free memory alone.
    const loaded = index > 0 ? [] : models.filter((each) => each.isLoaded);
    const mayGo = loaded.filter((each) => !each.isKept && isTurnOver(each, load));
    // Sizes are estimates: with nothing else in memory, the runtime itself shows whether the model fits.
    const all = index === 0 && mayGo.length === loaded.length ? mayGo : undefined;
    const unload = makeRoom(mayGo.filter(isUnused), need) ?? makeRoom(mayGo, need) ?? all;
    if (unload !== undefined) return { load, unload, isDue: unload.every(({ running }) => running === 0) };
  }
  return undefined;
}

function isUnused({ running, waiting }: PlannedModel): boolean {
  return running === 0 && waiting === 0;
}

/** True if a model in memory has to make room for one that is waited for, once its running answers are over. */
function isTurnOver(resident: PlannedModel, wanted: PlannedModel): boolean {
  const { loadMs, loadedForMs, idleMs } = resident;
  if (isUnused(resident) && idleMs >= lingerLoads * loadMs) return true;
  // A model that is only kept has no request that waits.
  if (wanted.waiting === 0) return false;
  return loadedForMs >= turnLoads * loadMs || wanted.waitedMs >= 2 * loadMs + wanted.loadMs;
}
