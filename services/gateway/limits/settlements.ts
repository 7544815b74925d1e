import { type Clock, type Timer, untilAborted } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { addUsage, type UsageRow } from "#shared/usage/usage.ts";
import { needsSeat } from "./judge-demand.ts";
import {
  type Admission,
  type Demand,
  type Growth,
  type Hold,
  type LimitsBook,
  nothingToSettle,
  type RunningUsage,
  type SeatedAnswer,
  type Settled,
  type Settlement,
} from "./limits.ts";
import type { LocalLimits } from "./local-limits.ts";

interface SettlementsOptions {
  readonly book: Pick<LimitsBook, "settle">;
  /** The limits in this gateway's memory, which count its holds. */
  readonly local: Pick<LocalLimits, "adopt" | "grow" | "settle" | "takeCharges">;
  /** The token of this boot of this gateway. Each boot needs a fresh one, because it numbers its settlements from one. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  /** The longest time that the end of a request without an answer waits to be booked together with others. */
  readonly gatherMs?: number;
  /** The most rows that wait while none can be booked. */
  readonly rowsMax?: number;
}

/** A request under way. */
export interface RunningRequest {
  /** Returns what is booked if it is cut off now; undefined while no machine works for it. */
  usedSoFar(): UsageRow | undefined;
  /** Returns its record for that case, as JSON; undefined where none are kept. */
  recordSoFar?(): string | undefined;
  /** Its answer, if that can be resumed. */
  readonly seated?: SeatedAnswer | undefined;
}

interface SettledRequest extends Omit<Settled, "hold"> {
  /** Absent for a request that was refused before it held anything, or whose key has no limits. */
  readonly hold?: Hold | undefined;
  readonly usage: UsageRow;
  /** The record of the request as JSON, if it gets one. */
  readonly request?: string | undefined;
  /** The request itself, if it was given to `follow`. */
  readonly running?: RunningRequest | undefined;
}

type Growing = Growth & Pick<PromiseWithResolvers<Hold>, "resolve">;
interface AskedAdmission extends PromiseWithResolvers<Admission> {
  readonly demand: Demand;
}
type EndedAt = Settled & { readonly endedAtMs: number };
type Sent = Pick<Settlement, "sequence" | "charges" | "usage" | "requests" | "running" | "over"> & {
  readonly ended: readonly EndedAt[];
};

/** A settlement goes out at least this often, and renews the seats of requests under way. */
const renewMs = 5_000;
/** The interval between two attempts while the book does not answer. */
const retryMs = 1_000;
/** The interval at which the book is told what requests under way used so far. */
const runningMs = 100;

/** Bounds the requests under way that a settlement tells of; the others follow with the next ones. */
const toldAtOnceMax = 200;

/** The attempts within which other gateways find the book again after an outage. */
const othersBackWithin = 3;

/** The most rows that wait to be booked, each of a day, a key and a model. */
export const unwrittenRowsMax = 10_000;
/**
 * Holds of requests that ended longer ago need no settling. Their seats have expired, and their tokens reserved of the
 * limit per minute have drained.
 */
const holdsMatterForMs = 60_000;

/**
 * The outbox of the book: the ends of this gateway's requests, until the book has them. The end of an answer is sent at
 * the end of the turn of the event loop, with all demands of the turn, which find the seat and the budget free. Requests
 * that got none wait a moment and are sent together. A settlement that fails is sent again with the same number and the same counts, so that nothing
 * is booked twice. Only the seats that it frees and renews are those of the new attempt.
 *
 * While the book does not answer, new ends are added up here, and one attempt a second tries the settlements that were
 * sent before. Once the book answers, the rest follows at once. Commands of one connection are executed in order, so no
 * later request is admitted before the book knows what this gateway granted meanwhile.
 */
export class Settlements {
  readonly #options: Required<SettlementsOptions>;
  readonly #underWay = new Map<string, Hold>();
  /** Requests under way, with their numbers once the book was told of them. */
  readonly #running = new Map<RunningRequest, number | undefined>();
  #runningIds = 0;
  /** The numbers of those of them that ended, for the next settlement. */
  #over: number[] = [];
  readonly #heartbeats: readonly Timer[];
  /** The sums of all rows that wait, by day, key and model. */
  #rows = new Map<string, UsageRow>();
  #ended: EndedAt[] = [];
  #requests: string[] = [];
  /** Questions that go out with the next settlement. */
  readonly #asked: { demands: AskedAdmission[]; growing: Growing[] } = { demands: [], growing: [] };
  /** Holds that are growing, by seat. */
  readonly #growing = new Map<string, Promise<Hold>>();
  /** Settlements that were sent and not acknowledged, in the order of their numbers. */
  #sent: Sent[] = [];
  #sequence = 0;
  #acknowledged = 0;
  #gateways = 1;
  #isAway = false;
  #backAtMs = -Infinity;
  /** The timer of the next settlement, or of the next attempt while the book does not answer. */
  #due: Timer | undefined;
  /** Set while ends, growths or demands wait for the end of this turn of the event loop. */
  #atTurnEnd: NodeJS.Immediate | undefined;
  #uncounted = 0;
  #unrecorded = 0;
  #flushed: PromiseWithResolvers<void> | undefined;
  #stopped = false;

  constructor(options: SettlementsOptions) {
    this.#options = { gatherMs: 100, rowsMax: unwrittenRowsMax, ...options };
    const { clock } = options;
    const renewing = clock.every(renewMs, () => {
      this.#reportUncounted("unwrittenRowsMax rows waited to be written");
      if (!this.#isAway) this.#send(this.#underWay.values());
    });
    const telling = clock.every(runningMs, () => {
      const running = this.#isAway ? [] : this.#usedSoFar();
      if (running.length > 0) this.#send([], running);
    });
    this.#heartbeats = [renewing, telling];
    this.#after(0, () => this.#send());
  }

  /** The number of gateways, as the book last reported it. */
  get gateways(): number {
    return this.#gateways;
  }

  /** True while the book does not answer. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /**
   * True while this gateway grants its share of each limit: the book does not answer, or has answered again so lately that
   * other gateways may not have told it yet what they granted.
   */
  get grantsShare(): boolean {
    const { clock } = this.#options;
    return this.#isAway || (this.#gateways > 1 && clock.now() - this.#backAtMs < retryMs * othersBackWithin);
  }

  /** Records the hold of a request under way, so that its seat is renewed. */
  begin(hold: Hold): void {
    if (hold.kept === "shared" && needsSeat(hold.limits)) this.#underWay.set(hold.seat, hold);
  }

  /** Takes the seat of a hold that nothing was asked for, at once. */
  occupy(hold: Hold): void {
    this.begin(hold);
    if (!this.#isAway && this.#underWay.has(hold.seat)) this.#send([hold]);
  }

  /** Gives back the seat of an answer that could not be resumed. */
  leave(hold: Hold): void {
    this.#endHold({ hold, ran: true, usedTokens: 0 });
  }

  /** Records a request under way until it ends. */
  follow(request: RunningRequest): void {
    this.#running.set(request, undefined);
  }

  #usedSoFar(): RunningUsage[] {
    const all: RunningUsage[] = [];
    for (const request of Array.from(this.#running.keys())) {
      if (all.length === toldAtOnceMax) break;
      all.push(...this.#usedBy(request));
    }
    return all;
  }

  #usedBy(request: RunningRequest): RunningUsage[] {
    const usage = request.usedSoFar();
    if (usage === undefined) return [];
    const told = this.#running.get(request);
    const id = told ?? (this.#runningIds += 1);
    // It is the last to be told again.
    this.#running.delete(request);
    this.#running.set(request, id);
    // The book has the record from the first time on, and adds the use to it.
    return [{ id, usage, answer: request.seated, request: told === undefined ? request.recordSoFar?.() : undefined }];
  }

  end({ hold, ran, usedTokens, usage, request, running }: SettledRequest): void {
    // The book frees the seat that another gateway took for the answer, also if this one had it for a moment only.
    if (running?.seated?.isResumed && this.#running.get(running) === undefined) this.#send([], this.#usedBy(running));
    const told = running && this.#running.get(running);
    if (told !== undefined) this.#over.push(told);
    if (running !== undefined) this.#running.delete(running);
    this.#count(usage);
    if (request !== undefined && this.#requests.length < this.#options.rowsMax) this.#requests.push(request);
    else if (request !== undefined) this.#unrecorded += 1;
    const growing = hold && this.#growing.get(hold.seat);
    if (growing !== undefined) void growing.then((grown) => this.#endHold({ hold: grown, ran, usedTokens }));
    else if (hold !== undefined) this.#endHold({ hold, ran, usedTokens });
    if (this.#isAway) return;
    if (ran || hold !== undefined) this.#sendAtTurnEnd();
    else if (this.#due === undefined && this.#atTurnEnd === undefined)
      this.#after(this.#options.gatherMs, () => this.#send());
  }

  #endHold(settled: Settled): void {
    const { hold } = settled;
    this.#underWay.delete(hold.seat);
    this.#options.local.settle(settled);
    if (hold.kept === "shared") this.#settle(settled);
  }

  /** Lets a hold grow with the next settlement, or by this gateway's share while the book does not answer. */
  grow(growth: Growth): Hold | Promise<Hold> {
    const { hold } = growth;
    if (this.#isAway || hold.kept === "here") {
      const grown = this.#options.local.grow(growth);
      this.begin(grown);
      return grown;
    }
    const { promise, resolve } = Promise.withResolvers<Hold>();
    this.#asked.growing.push({ ...growth, resolve });
    this.#growing.set(hold.seat, promise);
    this.#sendAtTurnEnd();
    return promise;
  }

  #grew({ resolve }: Growing, grown: Hold): void {
    this.#growing.delete(grown.seat);
    this.begin(grown);
    resolve(grown);
  }

  /** Frees the seat of a hold that the book may or may not have. Gives nothing back. */
  release(hold: Hold): void {
    this.#settle({ hold, ran: true, usedTokens: hold.tokens });
  }

  /** Asks the book for admission with the next settlement. Fails if the book does not answer. */
  ask(demand: Demand): Promise<Admission> {
    const asked: AskedAdmission = { demand, ...Promise.withResolvers<Admission>() };
    this.#asked.demands.push(asked);
    this.#sendAtTurnEnd();
    return asked.promise;
  }

  /** Begins an outage, after the book did not answer in time. */
  away(error: unknown): void {
    for (const each of this.#asked.growing.splice(0)) this.#grew(each, this.#options.local.grow(each));
    for (const { reject } of this.#asked.demands.splice(0)) reject(error);
    if (this.#stopped) return;
    if (!this.#isAway) {
      const message =
        "the book of limits does not answer: this gateway grants its share of them, and what requests used is kept";
      this.#options.log.warn({ err: error }, message);
      this.#cancelDue();
    }
    this.#isAway = true;
    if (this.#due === undefined) this.#after(retryMs, () => void this.#retry());
  }

  /** Returns the tokens that a key used in a period and that may not be booked yet. */
  spentOf(keyId: string, period: string): number {
    const rows = [...this.#sent.flatMap(({ usage }) => usage), ...this.#rows.values()];
    return rows
      .filter((row) => row.keyId === keyId && row.day.startsWith(period))
      .reduce((tokens, row) => tokens + row.promptTokens + row.completionTokens, 0);
  }

  /** Resolves when all ends are booked. */
  flush(): Promise<void> {
    if (this.#isWaiting && !this.#isAway) this.#send();
    if (this.#isAllBooked) return Promise.resolve();
    this.#flushed ??= Promise.withResolvers();
    return this.#flushed.promise;
  }

  /** Books all ends until the deadline aborts. Ends that come later are lost. */
  async stop(deadline: AbortSignal): Promise<void> {
    for (const timer of this.#heartbeats) timer.cancel();
    await untilAborted(deadline, this.flush()).catch(() => undefined);
    this.#stopped = true;
    this.#due?.cancel();
    this.#reportUncounted("unwrittenRowsMax rows waited to be written");
    const lost = [...this.#sent.flatMap(({ usage }) => usage), ...this.#rows.values()];
    this.#uncounted = lost.reduce((sum, { requests }) => sum + requests, 0);
    this.#unrecorded = this.#sent.reduce((sum, { requests }) => sum + requests.length, this.#requests.length);
    this.#reportUncounted("they could not be written before this gateway had to stop");
  }

  get #isWaiting(): boolean {
    return this.#rows.size > 0 || this.#ended.length > 0;
  }

  get #isAllBooked(): boolean {
    return !this.#isWaiting && this.#sent.every(({ usage, ended }) => usage.length === 0 && ended.length === 0);
  }

  #after(delayMs: number, run: () => void): void {
    this.#due = this.#options.clock.after(delayMs, () => {
      this.#due = undefined;
      run();
    });
  }

  #count(usage: UsageRow): void {
    const name = JSON.stringify([usage.day, usage.keyId, usage.model]);
    const sum = this.#rows.get(name);
    if (sum !== undefined) this.#rows.set(name, addUsage(sum, usage));
    else if (this.#rows.size < this.#options.rowsMax) this.#rows.set(name, usage);
    else this.#uncounted += usage.requests;
  }

  /** Beyond `rowsMax` an end is dropped, without lasting harm: a seat that is not renewed expires. */
  #settle(settled: Settled): void {
    const { clock, rowsMax } = this.#options;
    if (this.#ended.length < rowsMax) this.#ended.push({ ...settled, endedAtMs: clock.now() });
    if (!this.#isAway) this.#sendAtTurnEnd();
  }

  #sendAtTurnEnd(): void {
    this.#atTurnEnd ??= setImmediate(() => this.#send());
  }

  #cancelDue(): void {
    this.#due?.cancel();
    this.#due = undefined;
    clearImmediate(this.#atTurnEnd);
    this.#atTurnEnd = undefined;
  }

  #send(renewed: Iterable<Hold> = [], running: readonly RunningUsage[] = []): void {
    this.#cancelDue();
    if (this.#stopped) return;
    this.#sequence += 1;
    const usage = [...this.#rows.values()];
    const [ended, over, requests, charges] = [
      this.#ended,
      this.#over,
      this.#requests,
      this.#options.local.takeCharges(),
    ];
    const sent = { sequence: this.#sequence, usage, ended, running, over, requests, charges };
    this.#rows = new Map();
    this.#ended = [];
    this.#over = [];
    this.#requests = [];
    this.#sent.push(sent);
    const [growing, demands] = [this.#asked.growing.splice(0), this.#asked.demands.splice(0)];
    this.#write(sent, renewed, growing, demands).catch((error: unknown) => {
      this.#asked.growing.push(...growing);
      this.#asked.demands.push(...demands);
      this.away(error);
    });
  }

  async #write(
    { sequence, ended, ...sent }: Sent,
    renewed: Iterable<Hold> = [],
    growing: readonly Growing[] = [],
    demands: readonly AskedAdmission[] = [],
  ): Promise<void> {
    const { book, gateway, clock } = this.#options;
    const sinceMs = clock.now() - holdsMatterForMs;
    const { gateways, grown, admissions } = await book.settle({
      gateway,
      sequence,
      acknowledged: this.#acknowledged,
      ...sent,
      ended: ended.filter(({ endedAtMs }) => endedAtMs > sinceMs),
      renewed: [...renewed],
      growing: growing.map(({ hold, usedTokens }) => ({ hold, usedTokens })),
      demands: demands.map(({ demand }) => demand),
    });
    for (const [at, each] of growing.entries()) {
      const hold = grown[at] ?? each.hold;
      this.#options.local.adopt(hold);
      this.#grew(each, hold);
    }
    for (const [at, { resolve }] of demands.entries()) resolve(admissions[at] as Admission);
    this.#gateways = gateways;
    this.#acknowledged = Math.max(this.#acknowledged, sequence);
    this.#sent = this.#sent.filter((each) => each.sequence > this.#acknowledged);
    if (this.#isAllBooked) this.#flushed?.resolve();
  }

  /** Sends again what is not acknowledged, or an empty settlement. Ends the outage once all of it is booked. */
  async #retry(): Promise<void> {
    if (this.#sent.length === 0) {
      this.#sequence += 1;
      this.#sent.push({ sequence: this.#sequence, ...nothingToSettle });
    }
    try {
      await Promise.all(this.#sent.map((each) => this.#write(each)));
    } catch (error) {
      this.away(error);
      return;
    }
    if (this.#stopped) return;
    this.#isAway = false;
    this.#backAtMs = this.#options.clock.now();
    this.#options.log.info("the book of limits answers again; what requests used meanwhile is booked");
    this.#send(this.#underWay.values());
  }

  #reportUncounted(because: string): void {
    const requests = this.#uncounted;
    const unrecorded = this.#unrecorded;
    const { log } = this.#options;
    if (requests > 0) log.error({ requests }, `${requests} requests were not counted: ${because}`);
    if (unrecorded > 0) log.warn({ unrecorded }, `${unrecorded} requests have no record: ${because}`);
    [this.#uncounted, this.#unrecorded] = [0, 0];
  }
}
