import { memoryMbOf } from "./load-estimates.ts";

/** The size of a model, as a machine tells it that has the model. */
interface KnownSize {
  readonly machine: string;
  readonly sizeMb: number;
  readonly memoryMb: number;
}

interface PullingMemory {
  readonly total_mb: number;
  readonly disk_free_mb: number | null;
  readonly can_pull: boolean;
}

/** Returns the size of a model by its name, which may have the tag `:latest`; undefined if no machine has it. */
export function knownSize(
  name: string,
  offers: readonly {
    readonly id: string;
    readonly machine: string;
    readonly size_mb: number;
    readonly memory_mb?: number | null | undefined;
  }[],
): KnownSize | undefined {
  const offer = offers.find(({ id, size_mb: sizeMb }) => sizeMb > 0 && [id, `${id}:latest`].includes(name.trim()));
  if (offer === undefined) return undefined;
  const { machine, size_mb: sizeMb, memory_mb: memoryMb } = offer;
  return { machine, sizeMb, memoryMb: memoryMbOf({ size_mb: sizeMb, memory_mb: memoryMb ?? undefined }) };
}

/** Says whether a model fits onto a machine that is to pull it. The tone is warn where only the memory is too small. */
export function pullFit(
  memory: PullingMemory | null | undefined,
  size: KnownSize | undefined,
): readonly [tone: "good" | "warn" | "bad" | "plain", text: string] {
  if (!memory) return ["plain", "does not report its memory"];
  const { total_mb: totalMb, disk_free_mb: diskMb, can_pull: canPull } = memory;
  if (!canPull) return ["bad", "may not pull models (TRUNKLINE_MANAGE there has no pull)"];
  const has = `${gb(totalMb)} of memory, ${diskMb === null ? "disk unknown" : `${gb(diskMb)} of disk free`}`;
  if (size === undefined) return ["plain", has];
  const { sizeMb, memoryMb } = size;
  if (diskMb !== null && diskMb < sizeMb) return ["bad", `too little disk (${gb(diskMb)} free, ${gb(sizeMb)} needed)`];
  if (totalMb < memoryMb) return ["warn", `too little memory (${gb(totalMb)}, about ${gb(memoryMb)} needed)`];
  return ["good", `fits (${has})`];
}

function gb(mb: number): string {
  return `${(mb / 1_000).toFixed(1)} GB`;
}
