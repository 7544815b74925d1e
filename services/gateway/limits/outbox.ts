import type { Log } from "#shared/process/log.ts";
import type { Book } from "#shared/records/book.ts";
import { addUsage, nameOfUsage, noParts, type UsageRow } from "#shared/usage/usage.ts";
import { type BudgetUnit, isOfKey, type Spent, spentByKey, spentByOthers } from "./budgets.ts";
import {
  type Charge,
  nothingToSettle,
  type RunningRequest,
  type RunningUsage,
  type Settled,
  type Settlement,
} from "./limits.ts";

/** The most rows that wait to be booked, each of a day and other parts. */
export const unwrittenRowsMax = 10_000;

/**
 * Reservations of requests that ended longer ago need no settling. Their seats have expired, and their tokens reserved of the
 * limit per minute have drained.
 */
const holdsMatterForMs = 60_000;

/**
 * Sums of machines and end users go out this often, with the next settlement, so that Redis hardly pays for them. Those of a
 * gateway that is killed meanwhile are lost: the use is told without a machine and an end user, and is in the rows of keys.
 */
const partsEveryMs = 1_000;

/** Bounds the requests under way that a settlement tells of; the others follow with the next ones. */
const toldAtOnceMax = 200;

const reportEveryMs = 60_000;
type LossLog = Pick<Log, "warn" | "error">;
type EndedAt = Settled & { readonly endedAtMs: number };

/** The part of a settlement that is booked once, however often it is sent. */
export type Sent = Pick<Settlement, "sequence" | "charges" | "usage" | "spent" | "requests" | "running" | "over"> & {
  readonly ended: readonly EndedAt[];
};

/**
 * The news of this gateway's requests for the book. The ends of requests are here until the book has them: those that wait
 * are summed up, and the others were sent.
 */
export class Outbox {
  readonly #rowsMax: number;
  /** Requests under way, with their numbers once the book was told of them. */
  readonly #running = new Map<RunningRequest, number | undefined>();
  #runningIds = 0;
  /** The sums of what the rows that wait add to other books than those of keys, by book, unit and period. */
  #spent = new Map<string, Spent>();
  /** The sums of all rows that wait, by day and parts. */
  #rows = new Map<string, UsageRow>();
  /** The sums of machines and of end users, which are lost beyond `rowsMax`: that use is of nobody's name then. */
  #parts = new Map<string, UsageRow>();
  #partsDueAtMs = -Infinity;
  #ended: EndedAt[] = [];
  #requests: string[] = [];
  /** The numbers of requests that ended and that the book was told of. */
  #over: number[] = [];
  #sent: Sent[] = [];
  #sequence = 0;
  #acknowledged = 0;
  #uncounted = 0;
  #unrecorded = 0;
  #unnamed = 0;
  #reportedAtMs = -Infinity;

  constructor(rowsMax = unwrittenRowsMax) {
    this.#rowsMax = rowsMax;
  }

  /** Records a request under way until it ends. */
  follow(request: RunningRequest): void {
    this.#running.set(request, undefined);
  }

  get running(): Iterable<RunningRequest> {
    return this.#running.keys();
  }

  usedSoFar(): RunningUsage[] {
    const all: RunningUsage[] = [];
    for (const request of Array.from(this.#running.keys())) {
      if (all.length === toldAtOnceMax) break;
      all.push(...this.usedBy(request));
    }
    return all;
  }

  usedBy(request: RunningRequest): RunningUsage[] {
    const usage = request.usedSoFar();
    if (usage === undefined) return [];
    const told = this.#running.get(request);
    const id = told ?? (this.#runningIds += 1);
    // It is the last to be told again.
    this.#running.delete(request);
    this.#running.set(request, id);
    // The book has the record from the first time on, and adds the use to it.
    const record = told === undefined ? request.recordSoFar?.() : undefined;
    return [{ id, usage, spent: spentByOthers(usage, request.books), answer: request.seated, request: record }];
  }

  /** True if the book was told of a request under way. */
  wasTold(request: RunningRequest): boolean {
    return this.#running.get(request) !== undefined;
  }

  isOver(request: RunningRequest): void {
    const told = this.#running.get(request);
    if (told !== undefined) this.#over.push(told);
    this.#running.delete(request);
  }

  /** Adds a row of usage with its books, and the record of its request. */
  count(usage: UsageRow, request: string | undefined, books: readonly Book[] = []): void {
    const { day, machine, endUser } = usage;
    const isSpent = spentByOthers(usage, books).every((spent) => this.#spend(spent));
    const isAdded = this.#add(this.#rows, nameOfUsage(usage), { usage, parts: { machine: null, endUser: null } });
    if (!isAdded || !isSpent) this.#uncounted += usage.requests;
    if (machine !== null) this.#addPart(`${day} ${machine}`, usage, { machine });
    if (endUser !== null) this.#addPart(`${day} ${endUser}`, usage, { endUser });
    if (request === undefined) return;
    if (this.#requests.length < this.#rowsMax) this.#requests.push(request);
    else this.#unrecorded += 1;
  }

  #spend(spent: Spent): boolean {
    const name = `${spent.unit} ${spent.period} ${spent.book}`;
    const sum = this.#spent.get(name);
    if (sum === undefined && this.#spent.size >= this.#rowsMax) return false;
    this.#spent.set(name, { ...spent, amount: spent.amount + (sum?.amount ?? 0) });
    return true;
  }

  #addPart(name: string, usage: UsageRow, part: Partial<UsageRow>): void {
    if (!this.#add(this.#parts, name, { usage, parts: { ...noParts, ...part } })) this.#unnamed += usage.requests;
  }

  /** Adds to the sum of rows with the same parts. False if there are too many sums for another one. */
  #add(
    rows: Map<string, UsageRow>,
    name: string,
    { usage, parts }: { readonly usage: UsageRow; readonly parts: Partial<UsageRow> },
  ): boolean {
    const sum = rows.get(name);
    if (sum === undefined && rows.size >= this.#rowsMax) return false;
    rows.set(name, sum === undefined ? { ...usage, ...parts } : addUsage(sum, usage));
    return true;
  }

  /** Beyond `rowsMax` an end is dropped, without lasting harm: a seat that is not renewed expires. */
  settle(settled: Settled, endedAtMs: number): void {
    if (this.#ended.length < this.#rowsMax) this.#ended.push({ ...settled, endedAtMs });
  }

  /** Makes the next settlement of all that waits. It counts as sent. */
  take(charges: readonly Charge[], running: readonly RunningUsage[], nowMs: number): Sent {
    this.#sequence += 1;
    const parts = this.#takeParts(nowMs);
    const sent: Sent = {
      sequence: this.#sequence,
      usage: [...this.#rows.values(), ...parts],
      spent: [...this.#spent.values()],
      ended: this.#ended,
      running,
      over: this.#over,
      requests: this.#requests,
      charges,
    };
    [this.#rows, this.#spent] = [new Map(), new Map()];
    [this.#ended, this.#over, this.#requests] = [[], [], []];
    this.#sent.push(sent);
    return sent;
  }

  /** True if sums of machines or end users have waited long enough. */
  hasPartsDue(nowMs: number): boolean {
    return this.#parts.size > 0 && nowMs >= this.#partsDueAtMs;
  }

  #takeParts(nowMs: number): Iterable<UsageRow> {
    if (!this.hasPartsDue(nowMs)) return [];
    const parts = this.#parts.values();
    this.#parts = new Map();
    this.#partsDueAtMs = nowMs + partsEveryMs;
    return parts;
  }

  /** Makes a settlement of nothing, to try whether the book answers. */
  takeNothing(): void {
    this.#sequence += 1;
    this.#sent.push({ sequence: this.#sequence, ...nothingToSettle });
  }

  /** Returns a settlement for the book. The reservations that matter no more are left out of it. */
  settlementOf({ ended, ...sent }: Sent, nowMs: number) {
    const sinceMs = nowMs - holdsMatterForMs;
    return { ...sent, acknowledged: this.#acknowledged, ended: ended.filter(({ endedAtMs }) => endedAtMs > sinceMs) };
  }

  /** Forgets the settlements up to one that the book has. */
  acknowledge(sequence: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, sequence);
    this.#sent = this.#sent.filter((each) => each.sequence > this.#acknowledged);
  }

  /** The settlements that were sent and not acknowledged, in the order of their numbers. */
  get sent(): readonly Sent[] {
    return this.#sent;
  }

  get isWaiting(): boolean {
    return this.#rows.size + this.#parts.size > 0 || this.#ended.length > 0;
  }

  get isAllBooked(): boolean {
    return !this.isWaiting && this.#sent.every(({ usage, ended }) => usage.length === 0 && ended.length === 0);
  }

  /** The rows of keys that may not be booked yet. */
  #unbooked(): readonly UsageRow[] {
    return [...this.#sent.flatMap(({ usage }) => usage), ...this.#rows.values()].filter(({ keyId }) => keyId !== "");
  }

  /** Returns what a book used in a period and what may not be booked yet. */
  spentOf(book: string, period: string, unit: BudgetUnit): number {
    const others = [...this.#sent.flatMap(({ spent }) => spent), ...this.#spent.values()];
    return [...(isOfKey(book) ? this.#unbooked().flatMap(spentByKey) : []), ...others]
      .filter((each) => each.book === book && each.unit === unit && each.period === period)
      .reduce((sum, { amount }) => sum + amount, 0);
  }

  /** Logs what was lost since the last report, once a minute at most. */
  reportLost(log: LossLog, nowMs: number, because = "unwrittenRowsMax rows waited to be written"): void {
    const [requests, unrecorded, unnamed] = [this.#uncounted, this.#unrecorded, this.#unnamed];
    if (requests + unrecorded + unnamed === 0 || nowMs - this.#reportedAtMs < reportEveryMs) return;
    this.#reportedAtMs = nowMs;
    if (requests > 0) log.error({ requests }, `${requests} requests were not counted: ${because}`);
    if (unrecorded > 0) log.warn({ unrecorded }, `${unrecorded} requests have no record: ${because}`);
    if (unnamed > 0) log.warn({ unnamed }, `${unnamed} requests are counted for no machine or no end user: ${because}`);
    [this.#uncounted, this.#unrecorded, this.#unnamed] = [0, 0, 0];
  }

  /** Logs all that waits and was sent as lost: this gateway stops, and the book does not answer. */
  giveUp(log: LossLog): void {
    this.reportLost(log, Infinity);
    this.#uncounted = this.#unbooked().reduce((sum, { requests }) => sum + requests, 0);
    this.#unrecorded = this.#sent.reduce((sum, { requests }) => sum + requests.length, this.#requests.length);
    this.reportLost(log, Infinity, "they could not be written before this gateway had to stop");
  }
}
