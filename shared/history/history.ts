import { setImmediate } from "node:timers/promises";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { dayMs } from "../process/clock.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import type { StateStore } from "../store/open-key-store.ts";
import type { StateDatabase } from "../store/state-database.ts";
import { Row, Sums } from "./sums.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;
/** The two lengths for which sums are stored, how long they are kept, and the time whose sums Redis has under one name. */
export const slotLengths = {
  minute: { ms: minuteMs, keptMs: 2 * dayMs, slabMs: hourMs },
  hour: { ms: hourMs, keptMs: 90 * dayMs, slabMs: dayMs },
} as const;
export type SlotLength = (typeof slotLengths)[keyof typeof slotLengths];

interface Slot {
  readonly length: SlotLength;
  /** When the minute or hour begins. */
  readonly at: number;
}

/** Sums that a gateway adds once: the same number of the same gateway is not added again. */
export interface Added {
  readonly minute: number;
  readonly sums: Sums;
  readonly gateway: string;
  readonly sequence: number;
}

interface Slots {
  /** Changes slots in one step, in which nobody else changes them. */
  change(slots: readonly Slot[], make: (kept: Uint8Array | undefined) => Uint8Array): Promise<void>;
  /** Yields the slots of a time, one slab after the other. */
  read(length: SlotLength, fromMs: number, untilMs: number): Promise<readonly (readonly [number, Uint8Array])[]>;
  /** Returns the time since when sums are stored. */
  since(): Promise<number | undefined>;
}

/** The reading side of the history, for operations. */
export interface HistoryReader {
  visit(
    range: { readonly length: SlotLength; readonly fromMs: number; readonly untilMs: number },
    take: (at: number, sums: Sums) => void,
  ): Promise<void>;
  since(): Promise<number | undefined>;
}

/** Slots that are read in one turn of the event loop. */
const slotsPerTurn = 12;

/** The sums of ended requests of a site by minute and by hour. A slot without a request is not stored. */
export class History implements HistoryReader {
  readonly #slots: Slots;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /** Adds the sums of a minute to it and to its hour. */
  add({ minute, sums, gateway, sequence }: Added): Promise<void> {
    const slots = Object.values(slotLengths).map((length) => ({
      length,
      at: Math.floor(minute / length.ms) * length.ms,
    }));
    return this.#slots.change(slots, (bytes) => {
      const kept = bytes === undefined ? { added: {}, sums: new Sums() } : unpack(bytes);
      if ((kept.added[gateway] ?? 0) >= sequence) return pack(kept);
      kept.sums.merge(sums);
      return pack({ sums: kept.sums, added: { ...kept.added, [gateway]: sequence } });
    });
  }

  async visit(
    { length, fromMs, untilMs }: Parameters<HistoryReader["visit"]>[0],
    take: (at: number, sums: Sums) => void,
  ): Promise<void> {
    const { slabMs } = length;
    for (let slab = Math.floor(fromMs / slabMs) * slabMs; slab < untilMs; slab += slabMs) {
      const [from, until] = [Math.max(slab, fromMs), Math.min(slab + slabMs, untilMs)];
      for (const [index, [at, bytes]] of (await this.#slots.read(length, from, until)).entries()) {
        take(at, unpack(bytes).sums);
        // A slot of many series takes a millisecond, and a gateway has streams to serve.
        if (index % slotsPerTurn === 0) await setImmediate();
      }
    }
  }

  since(): Promise<number | undefined> {
    return this.#slots.since();
  }
}

/** Opens the history of the store that holds the keys. */
export function openHistory(state: StateStore): History {
  return new History(state.kind === "redis" ? inRedis(state.redis) : inDatabase(state.database));
}

/** A slot as it is stored: its sums, and the last number of each gateway that is in them. */
interface Kept {
  readonly added: Readonly<Record<string, number>>;
  readonly sums: Sums;
}

/** Gateways whose numbers a slot has. Only one that waits for an answer sends a number twice. */
const addedMax = 32;

function pack({ added, sums }: Kept): Uint8Array {
  const rows = [...sums.rows].map(([series, { counts, failures }]) => [series, counts, [...failures]]);
  return deflateRawSync(JSON.stringify([Object.entries(added).slice(-addedMax), rows]));
}

type Packed = [added: [string, number][], rows: [series: string, counts: number[], failures: [string, number][]][]];

function unpack(bytes: Uint8Array): Kept {
  const [added, rows] = JSON.parse(inflateRawSync(bytes).toString()) as Packed;
  const sums = new Sums();
  for (const [series, counts, failures] of rows) sums.rowOf(series).merge(new Row(counts, new Map(failures)));
  return { added: Object.fromEntries(added), sums };
}

const sinceAt = "history:since";
const slabAt = ({ length, at }: Slot): string =>
  `history:${length.ms / 1_000}:${(Math.floor(at / length.slabMs) * length.slabMs) / 1_000}`;

/**
 * Sets fields of two slabs if both are as they were read. KEYS: the time since when sums are stored, the slabs. ARGV: that
 * time, then for each slab its field, its value before and after, and the seconds until it is dropped.
 */
const swapLua = `
for at = 2, #KEYS do
  if (redis.call("HGET", KEYS[at], ARGV[at * 4 - 6]) or "") ~= ARGV[at * 4 - 5] then return 0 end
end
for at = 2, #KEYS do
  redis.call("HSET", KEYS[at], ARGV[at * 4 - 6], ARGV[at * 4 - 4])
  redis.call("EXPIRE", KEYS[at], ARGV[at * 4 - 3])
end
redis.call("SET", KEYS[1], ARGV[1], "NX")
return 1
`;

/** Attempts to change slots, of which each fails only where another gateway succeeded. */
const attemptsMax = 50;

function inRedis(redis: RedisConnection): Slots {
  const swap = redis.script<number>(swapLua, 3);
  return {
    async change(slots, make) {
      for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
        const kept = (await redis.pipeline("read the history", (batch) =>
          slots.reduce((all, slot) => all.hgetBuffer(slabAt(slot), String(slot.at)), batch),
        )) as (Buffer | null)[];
        const changes = slots.flatMap(({ at, length }, index) => {
          const before = kept[index] ?? undefined;
          const seconds = (length.keptMs + length.slabMs) / 1_000;
          return [at, before ?? "", Buffer.from(make(before)), seconds];
        });
        const [{ at }] = slots as readonly [Slot];
        if ((await swap("write the history", sinceAt, ...slots.map(slabAt), at, ...changes)) === 1) return;
      }
      throw new Error(`the history was changed by others ${attemptsMax} times (attemptsMax)`);
    },
    async read(length, fromMs, untilMs) {
      const slab = await redis.run("read the history", (client) =>
        client.hgetallBuffer(slabAt({ length, at: fromMs })),
      );
      const slots = Object.entries(slab).map(([at, bytes]) => [Number(at), bytes] as const);
      return slots.filter(([at]) => at >= fromMs && at < untilMs);
    },
    async since() {
      const text = await redis.run("read the history", (client) => client.get(sinceAt));
      return text === null ? undefined : Number(text);
    },
  };
}

/**
 * Returns the number of a slot in SQLite. Hours stand before minutes, so that a minute is appended to the table, which leaves
 * its pages full.
 */
const slotAt = ({ length, at }: Slot): number => (length === slotLengths.hour ? 1e13 : 2e13) + at;

function inDatabase(database: StateDatabase): Slots {
  return {
    async change(slots, make) {
      database.change("write the history", (sql) => {
        for (const { length, at } of slots) {
          const slot = slotAt({ length, at });
          const [first, old] = [slotAt({ length, at: 0 }), slotAt({ length, at: at - length.keptMs })];
          const row = sql.get`SELECT sums FROM history WHERE slot = ${slot}`;
          const made = make(row?.["sums"] as Uint8Array | undefined);
          sql.run`INSERT INTO history VALUES (${slot}, ${made}) ON CONFLICT DO UPDATE SET sums = excluded.sums`;
          sql.run`DELETE FROM history WHERE slot >= ${first} AND slot < ${old}`;
        }
      });
    },
    async read(length, fromMs, untilMs) {
      const zero = slotAt({ length, at: 0 });
      const [from, until] = [zero + fromMs, zero + untilMs];
      const rows = database.read(
        "read the history",
        (sql) => sql.all`SELECT slot - ${zero} AS at, sums FROM history WHERE slot >= ${from} AND slot < ${until}`,
      );
      return rows.map(({ at, sums }) => [Number(at), sums as Uint8Array] as const);
    },
    async since() {
      const row = database.read("read the history", (sql) => sql.get`SELECT min(slot) AS slot FROM history`);
      return row?.["slot"] == null ? undefined : Number(row["slot"]) - slotAt({ length: slotLengths.hour, at: 0 });
    },
  };
}
