import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { totalmem } from "node:os";
import { promisify } from "node:util";
import { z } from "zod";
import type { ModelMemory } from "#shared/placing/make-room.ts";

const run = promisify(execFile);
const megabyte = 1_000_000;
const mebibyte = 1_048_576;

/** The part of a Mac's memory that Metal lets models use. */
const metalPart = 0.75;

/** A tool that lists the memory of graphics cards, and how its list is read. */
interface Lister {
  readonly command: string;
  readonly args: readonly string[];
  readonly read: (text: string) => ModelMemory;
}

const rocmCards = z.record(
  z.string(),
  z.object({ "VRAM Total Memory (B)": z.coerce.number(), "VRAM Total Used Memory (B)": z.coerce.number() }),
);

const listers: readonly Lister[] = [
  {
    command: "nvidia-smi",
    args: ["--query-gpu=memory.total,memory.free", "--format=csv,noheader,nounits"],
    read: (text) => {
      const cards = text
        .trim()
        .split("\n")
        .map((line) => line.split(",").map(Number));
      const sumOf = (column: number): number => cards.reduce((sum, card) => sum + (card[column] ?? NaN), 0);
      return { totalMb: (sumOf(0) * mebibyte) / megabyte, freeMb: (sumOf(1) * mebibyte) / megabyte };
    },
  },
  {
    command: "rocm-smi",
    args: ["--showmeminfo", "vram", "--json"],
    read: (text) => {
      const cards = Object.values(rocmCards.parse(JSON.parse(text)));
      const totalMb = cards.reduce((sum, card) => sum + card["VRAM Total Memory (B)"], 0) / megabyte;
      const usedMb = cards.reduce((sum, card) => sum + card["VRAM Total Used Memory (B)"], 0) / megabyte;
      return { totalMb, freeMb: totalMb - usedMb };
    },
  },
];

interface MemoryOptions {
  readonly boundMb?: number | undefined;
  readonly modelsFolder?: string | undefined;
  readonly tools?: readonly Lister[];
}

/**
 * Reads the memory for models: all graphics cards together, or the memory of this machine if no tool lists a card. A bound
 * of the operator's replaces the total.
 */
export class MemoryReader {
  readonly #options: MemoryOptions;
  /** The tools to ask: only the one that answered, once one did, and none once none did. */
  #tools: readonly Lister[];
  /** The latest answer, which stands while the tool does not answer. */
  #latest: ModelMemory | undefined;

  constructor(options: MemoryOptions) {
    this.#options = options;
    this.#tools = options.tools ?? listers;
  }

  async read(): Promise<ModelMemory> {
    const { totalMb, freeMb } = (await this.#ofCards()) ?? ofMachine();
    return { totalMb: Math.min(totalMb, this.#options.boundMb ?? Infinity), freeMb };
  }

  /** Returns what is free on the disk where models lie; undefined if that folder is not here. */
  async diskFreeMb(): Promise<number | undefined> {
    const { modelsFolder } = this.#options;
    const disk = modelsFolder === undefined ? undefined : await statfs(modelsFolder).catch(() => undefined);
    return disk && (disk.bavail * disk.bsize) / megabyte;
  }

  async #ofCards(): Promise<ModelMemory | undefined> {
    for (const tool of this.#tools) {
      const memory = await listedBy(tool);
      if (memory === undefined) continue;
      this.#tools = [tool];
      this.#latest = memory;
      return memory;
    }
    if (this.#latest === undefined) this.#tools = [];
    return this.#latest;
  }
}

async function listedBy({ command, args, read }: Lister): Promise<ModelMemory | undefined> {
  try {
    const memory = read((await run(command, args, { timeout: 5_000 })).stdout);
    return Number.isFinite(memory.freeMb) && memory.totalMb > 0 ? memory : undefined;
  } catch {
    return undefined;
  }
}

function ofMachine(): ModelMemory {
  const all = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  // macOS counts as used what it keeps only as long as nobody needs it.
  if (process.platform === "darwin") return { totalMb: (all * metalPart) / megabyte, freeMb: Infinity };
  return { totalMb: all / megabyte, freeMb: process.availableMemory() / megabyte };
}
