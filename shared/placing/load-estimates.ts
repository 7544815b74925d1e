/** A model, as far as its memory and its load are estimated. */
interface Estimated {
  readonly size_mb: number;
  readonly memory_mb?: number | undefined;
  readonly load_ms?: number | undefined;
}

/** A model in memory is larger than its file, by its window. */
const windowPart = 0.2;

/** Returns the memory that a model takes: as measured, or else by the size of its file. */
export function memoryMbOf({ memory_mb: measuredMb, size_mb: sizeMb }: Estimated): number {
  return measuredMb ?? sizeMb * (1 + windowPart);
}

/** Returns the time that the load of a model takes: as measured, or else as from a usual disk, some 1,000 MB a second. */
export function loadMsOf({ load_ms: measuredMs, size_mb: sizeMb }: Estimated): number {
  return measuredMs ?? 1_000 + sizeMb;
}
