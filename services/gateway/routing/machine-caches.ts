import { mixed, type PromptBlocks } from "./prompt-blocks.ts";
import type { Target } from "../fleet/roster.ts";

/** Limits the blocks that are remembered of a machine: half a million tokens, in at most 4 MB. */
export const blocksKeptMax = 32_768;
/** Limits the blocks that are remembered of all machines, in at most 256 MB. */
export const blocksOfAllMax = 64 * blocksKeptMax;
/** The least blocks that are remembered of a machine, however little it proved to keep. */
const blocksKeptMin = 256;
/** Time after which a machine that reports no cached tokens is expected to have dropped an unused prompt. */
const unprovedMs = 600_000;
/** A prompt that was placed less than this before may not be computed yet, and proves nothing when it is not cached. */
const settledMs = 2_000;
/**
 * A machine that had less than this share of what was expected has dropped it. Between the two lies what characters do
 * not show: images and other languages have other numbers of tokens.
 */
const missBelow = 0.25;
/** Share of its blocks that a machine is expected to keep after a miss. */
const keptAfterMiss = 0.9;
/** Growth of the expectation after a machine had what was expected. */
const grownAfterHit = 1.05;

interface Cache {
  readonly epoch: string;
  /** The time of the last use of each block. The least recently used block is the first. */
  readonly usedAtSeconds: Map<number, number>;
  blocksMax: number;
  /** True if the machine's answers report cached tokens. */
  reportsHits: boolean;
}

/** The beginning of a prompt that a machine is expected to have cached. */
export interface Expected {
  readonly blocks: number;
  /** Time since the last of the blocks was used. */
  readonly ageMs: number;
}

export const nothingExpected: Expected = { blocks: 0, ageMs: 0 };

/**
 * Remembers which prompts each machine computed lately, as hashes. The blocks of a prompt are entered last block first.
 * The end of a prompt is therefore forgotten before its beginning, and a known block means that all before it are known.
 */
export class MachineCaches {
  /** By machine. The machine that got a prompt the longest ago is the first. */
  readonly #caches = new Map<string, Cache>();
  #size = 0;

  /** Returns how much of a prompt a machine is expected to have, from its beginning on. */
  expected({ machine, epoch }: Target, { blocks }: PromptBlocks, salt: number, nowMs: number): Expected {
    const cache = this.#caches.get(machine);
    if (cache?.epoch !== epoch) return nothingExpected;
    const { usedAtSeconds, reportsHits } = cache;
    // Nearly always a machine that lacks the first block has none, and one look is enough.
    if (blocks[0] === undefined || !usedAtSeconds.has(mixed(blocks[0], salt))) return nothingExpected;
    const ageMsMax = reportsHits ? Infinity : unprovedMs;
    let expected = nothingExpected;
    let most = blocks.length;
    while (expected.blocks < most) {
      const middle = (expected.blocks + most + 1) >> 1;
      const usedAt = usedAtSeconds.get(mixed(blocks[middle - 1] ?? 0, salt));
      const ageMs = usedAt === undefined ? Infinity : Math.max(0, nowMs - usedAt * 1_000);
      if (ageMs < Infinity && ageMs <= ageMsMax) expected = { blocks: middle, ageMs };
      else most = middle - 1;
    }
    return expected;
  }

  /** Returns up to `count` of these machines, which are expected to have most of a prompt. */
  warmest(
    machines: readonly string[],
    { prompt, salt, count }: { readonly prompt: PromptBlocks; readonly salt: number; readonly count: number },
    nowMs: number,
  ): readonly string[] {
    const warm: { readonly machine: string; readonly blocks: number }[] = [];
    for (const machine of machines) {
      const epoch = this.#caches.get(machine)?.epoch;
      const blocks = epoch === undefined ? 0 : this.expected({ machine, epoch }, prompt, salt, nowMs).blocks;
      if (blocks > 0) warm.push({ machine, blocks });
    }
    const warmest = warm.toSorted((one, other) => other.blocks - one.blocks).slice(0, count);
    return warmest.map(({ machine }) => machine);
  }

  /** Notes that a machine got a prompt. A prompt for an older boot is not noted unless this gateway placed it itself. */
  placed(
    { machine, epoch }: Target,
    { blocks, salt }: { readonly blocks: Int32Array; readonly salt: number },
    { nowMs, isOwn }: { readonly nowMs: number; readonly isOwn: boolean },
  ): void {
    let cache = this.#caches.get(machine);
    if (cache !== undefined && cache.epoch > epoch && !isOwn) return;
    this.#caches.delete(machine);
    if (cache?.epoch !== epoch) {
      this.#size -= cache?.usedAtSeconds.size ?? 0;
      cache = { epoch, usedAtSeconds: new Map(), blocksMax: blocksKeptMax, reportsHits: false };
    }
    this.#caches.set(machine, cache);
    const { usedAtSeconds } = cache;
    const sizeBefore = usedAtSeconds.size;
    const seconds = Math.floor(nowMs / 1_000);
    for (let at = blocks.length - 1; at >= 0; at -= 1) {
      const block = mixed(blocks[at] ?? 0, salt);
      usedAtSeconds.delete(block);
      usedAtSeconds.set(block, seconds);
    }
    this.#size += usedAtSeconds.size - sizeBefore;
    this.#forgetOldest(cache);
    this.#forgetMachines();
  }

  /** Learns from an answer how much a machine really keeps. `found` are the blocks that it had cached. */
  proved({ machine, epoch }: Target, { blocks, ageMs }: Expected, found: number): void {
    const cache = this.#caches.get(machine);
    if (cache?.epoch !== epoch) return;
    cache.reportsHits = true;
    const { size } = cache.usedAtSeconds;
    const isMiss = found < missBelow * blocks;
    if (isMiss && ageMs >= settledMs) {
      cache.blocksMax = Math.max(blocksKeptMin, Math.floor(size * keptAfterMiss));
      this.#forgetOldest(cache);
    } else if (!isMiss && size >= cache.blocksMax) {
      cache.blocksMax = Math.min(blocksKeptMax, Math.ceil(cache.blocksMax * grownAfterHit));
    }
  }

  /** The number of blocks that are remembered of all machines. */
  get size(): number {
    return this.#size;
  }

  /** The number of blocks that are remembered of a machine. */
  sizeOf(machine: string): number {
    return this.#caches.get(machine)?.usedAtSeconds.size ?? 0;
  }

  #forgetOldest({ usedAtSeconds, blocksMax }: Cache): void {
    for (const oldest of usedAtSeconds.keys()) {
      if (usedAtSeconds.size <= blocksMax) return;
      usedAtSeconds.delete(oldest);
      this.#size -= 1;
    }
  }

  #forgetMachines(): void {
    for (const [machine, { usedAtSeconds }] of this.#caches) {
      if (this.#size <= blocksOfAllMax) return;
      this.#caches.delete(machine);
      this.#size -= usedAtSeconds.size;
    }
  }
}
