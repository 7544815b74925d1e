/** A model in memory, as far as it may have to make room for another one. */
export interface Resident {
  readonly model: string;
  readonly memoryMb: number;
  /** The time that its return is expected to cost: its load, weighed by how likely it is asked for soon. */
  readonly returnMs: number;
}

/** The memory for models: of the graphics cards if there are some, of the machine otherwise. */
export interface ModelMemory {
  readonly totalMb: number;
  readonly freeMb: number;
}

/**
 * Chooses the models that go so that another one fits, those whose return is cheapest for their size. Returns undefined if
 * all of them together are too small.
 */
export function makeRoom<Each extends Resident>(
  residents: readonly Each[],
  { neededMb, freeMb }: { readonly neededMb: number; readonly freeMb: number },
): readonly Each[] | undefined {
  const goes: Each[] = [];
  let missingMb = neededMb - freeMb;
  const costOf = ({ returnMs, memoryMb }: Resident): number => returnMs / Math.max(1, memoryMb);
  for (const resident of residents.toSorted((one, other) => costOf(one) - costOf(other))) {
    if (missingMb <= 0) break;
    goes.push(resident);
    missingMb -= resident.memoryMb;
  }
  if (missingMb > 0) return undefined;
  // A small model that was chosen first may stay where a large one goes as well.
  return goes
    .toSorted((one, other) => other.returnMs - one.returnMs)
    .filter((resident) => {
      if (missingMb + resident.memoryMb > 0) return true;
      missingMb += resident.memoryMb;
      return false;
    });
}
