import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { StateDatabase } from "../store/state-database.ts";
import type { StateStore } from "../store/open-key-store.ts";
import type { RedisConnection } from "../process/redis-connection.ts";
import { dayMs } from "../process/clock.ts";
import { matches, requestRecord, type RequestQuery, type RequestRecord } from "./request-record.ts";

/** How many request records are kept, and for how long. None are made if `max` is 0. */
export interface KeptRequests {
  readonly max: number;
  readonly ms: number;
}

export const keptRequestsDefault: KeptRequests = { max: 100_000, ms: 7 * dayMs };

/** The stream of request records in Redis. Each entry has one field, `record`. */
export const redisRequestsAt = "requests";

/** A record with its place in the order in which requests ended. */
interface Found {
  readonly cursor: string;
  readonly record: RequestRecord;
}

/** An entry of the store, whose shape is not proved: a newer gateway may have written it. */
interface StoredRecord {
  readonly cursor: string;
  readonly stored: unknown;
}

export interface RequestPage {
  /** The latest first. */
  readonly found: readonly Found[];
  /** Where to go on: pass it as `before`. Undefined when nothing older is left. */
  readonly next: string | undefined;
  /** The latest entry that was looked at, whether it matched or not: pass it as `after` to follow. */
  readonly latest: string | undefined;
  /** When the earliest entry that was looked at had ended. Undefined if there was none that can be read. */
  readonly lookedUntilMs: number | undefined;
  /** Entries that could not be read, and so are missing. */
  readonly unread: number;
}

export interface Range {
  readonly limit: number;
  /** The time after which a search ends with what it has found; it may look at `lookedAtMax` records unless given. */
  readonly withinMs?: number | undefined;
  /** Only records that ended before this one, and after that one. */
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

/** The records of ended requests, which gateways write as they book them (`Settlement.requests`). */
export class RequestRecords {
  readonly #source: Source;

  constructor(source: Source) {
    this.#source = source;
  }

  /** Finds requests, the latest first. */
  async find(query: RequestQuery, { limit, withinMs = Infinity, before, after }: Range): Promise<RequestPage> {
    const untilMs = performance.now() + withinMs;
    const found: Found[] = [];
    const page = { next: before, latest: undefined as string | undefined, unread: 0 };
    let lookedUntilMs: number | undefined;
    for await (const { entries, next } of this.#pages(query, { before, after })) {
      page.latest ??= entries[0]?.cursor;
      for (const { cursor, stored } of entries) {
        page.next = cursor;
        lookedUntilMs = endOf(stored) ?? lookedUntilMs;
        const record = readMatch(stored, query);
        if (record === "unread") page.unread += 1;
        else if (record !== undefined) found.push({ cursor, record });
        if (found.length === limit) return { ...page, found, lookedUntilMs };
      }
      page.next = next;
      if (performance.now() > untilMs) break;
    }
    return { ...page, found, lookedUntilMs };
  }

  /** Visits all records that match. Returns false if there were too many to look at. */
  async visit(query: RequestQuery, take: (record: RequestRecord) => void): Promise<boolean> {
    let next: string | undefined;
    for await (const page of this.#pages(query, {})) {
      for (const { stored } of page.entries) {
        const record = readMatch(stored, query);
        if (record !== undefined && record !== "unread") take(record);
      }
      next = page.next;
    }
    return next === undefined;
  }

  /** Yields pages, the latest first: `lookedAtMax` records at most, so that no search reads without end. */
  async *#pages(
    { sinceMs = -Infinity }: RequestQuery,
    { before, after }: Omit<Range, "limit">,
  ): AsyncGenerator<{ readonly entries: readonly StoredRecord[]; readonly next: string | undefined }> {
    let next = before;
    for (let looked = 0; looked < lookedAtMax; looked += pageLength) {
      const entries = await this.#source.page({ before: next, after, sinceMs });
      const last = entries.at(-1);
      // Requests stand in the order in which they ended, so none behind one that ended long before can match.
      const isOld = (endOf(last?.stored) ?? Infinity) + skewMs < sinceMs;
      next = entries.length < pageLength || isOld ? undefined : last?.cursor;
      yield { entries, next };
      if (next === undefined) return;
      // A page from SQLite takes no turn of the event loop, and a gateway has streams to serve between two pages.
      await setImmediate();
    }
  }

  /** Returns the record of one request. Undefined if there is none, or none any more. */
  get(id: string): Promise<RequestRecord | undefined> {
    return this.#source.get(id);
  }
}

const pageLength = 1_000;
/** Records that one search looks at. */
export const lookedAtMax = 200_000;
/** Requests end after they arrived, but the clock of their gateway may be ahead of the store's by as much. */
const skewMs = 60_000;

interface Source {
  /** Returns up to `pageLength` entries, the latest first. Those that ended long before `sinceMs` may be left out. */
  page(range: Omit<Range, "limit"> & Pick<RequestQuery, "sinceMs">): Promise<readonly StoredRecord[]>;
  get(id: string): Promise<RequestRecord | undefined>;
}

/** Opens the request records of the store that holds the keys. */
export function openRequests(state: StateStore): RequestRecords {
  return new RequestRecords(state.kind === "redis" ? inRedis(state.redis) : inDatabase(state.database));
}

const entries = z.array(z.tuple([z.string(), z.tuple([z.literal("record"), z.string()])]));

function inRedis(redis: RedisConnection): Source {
  const page: Source["page"] = async ({ before, after, sinceMs = 0 }) => {
    const from = after === undefined ? String(Math.max(0, Math.floor(sinceMs) - skewMs)) : `(${after}`;
    const to = before === undefined ? "+" : `(${before}`;
    const reply = await redis.run("read request records", (client) =>
      client.xrevrange(redisRequestsAt, to, from, "COUNT", pageLength),
    );
    return entries.parse(reply).map(([cursor, [, text]]) => ({ cursor, stored: JSON.parse(text) as unknown }));
  };
  return {
    page,
    async get(id) {
      for (let before: string | undefined; ;) {
        const read = await page({ before });
        const found = read.find(({ stored }) => Object(stored).id === id);
        if (found !== undefined || read.length < pageLength) return requestRecord.safeParse(found?.stored).data;
        before = read.at(-1)?.cursor;
      }
    },
  };
}

function inDatabase(database: StateDatabase): Source {
  return {
    async page({ before, after = "0" }) {
      const rows = database.read(
        "read request records",
        (sql) => sql.all`
          SELECT sequence, record FROM requests
          WHERE sequence > ${Number(after)} AND sequence < ${Number(before ?? Number.MAX_SAFE_INTEGER)}
          ORDER BY sequence DESC LIMIT ${pageLength}`,
      );
      return rows.map((row) => ({
        cursor: String(row["sequence"]),
        stored: JSON.parse(String(row["record"])) as unknown,
      }));
    },
    async get(id) {
      const row = database.read(
        "read a request record",
        (sql) => sql.get`SELECT record FROM requests WHERE id = ${id} ORDER BY sequence DESC LIMIT 1`,
      );
      return row && requestRecord.safeParse(JSON.parse(String(row["record"]))).data;
    },
  };
}

/**
 * Reads a stored record that matches. Most match no filter, and the proof of a shape costs several times as much as a look
 * at its fields.
 */
function readMatch(stored: unknown, query: RequestQuery): RequestRecord | "unread" | undefined {
  try {
    if (!matches(stored as RequestRecord, query)) return undefined;
  } catch {
    return "unread";
  }
  return requestRecord.safeParse(stored).data ?? "unread";
}

/** Returns when a stored request had ended. */
function endOf(stored: unknown): number | undefined {
  const { at, totalMs }: Partial<RequestRecord> = Object(stored);
  return typeof at === "number" && typeof totalMs === "number" ? at + totalMs : undefined;
}
