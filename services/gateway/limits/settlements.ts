import { type Clock, type Timer, untilAborted } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { BudgetUnit } from "./budgets.ts";
import { hasSeat } from "./judge-demand.ts";
import type {
  Admission,
  Demand,
  Growth,
  Reservation,
  LimitsBook,
  RunningRequest,
  RunningUsage,
  Settled,
  SettledRequest,
} from "./limits.ts";
import type { LocalLimits } from "./local-limits.ts";
import { Outbox, type Sent } from "./outbox.ts";

interface SettlementsOptions {
  readonly book: Pick<LimitsBook, "settle">;
  /** The limits in this gateway's memory, which count its reservations. */
  readonly local: Pick<LocalLimits, "adopt" | "gateways" | "grow" | "settle" | "takeCharges">;
  /** The token of this boot of this gateway. Each boot needs a fresh one, because it numbers its settlements from one. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  /** The longest time that the end of a request without an answer waits to be booked together with others. */
  readonly gatherMs?: number;
  /** The most rows that wait while none can be booked. */
  readonly rowsMax?: number;
  /** Called just before the book is told of requests under way. It tells machines the same counts, so that a kill never parts the two. */
  readonly tellMachines?: () => void;
}

type Growing = Growth & Pick<PromiseWithResolvers<Reservation>, "resolve">;
type AskedAdmission = PromiseWithResolvers<Admission> & { readonly demand: Demand };

/** The part of a settlement that goes out once, and not when it is sent again. */
interface Questions {
  readonly renewed: readonly Reservation[];
  readonly growing: readonly Growing[];
  readonly demands: readonly AskedAdmission[];
}

const noQuestions: Questions = { renewed: [], growing: [], demands: [] };
/** A settlement goes out at least this often, and renews the seats of requests under way. */
const renewMs = 5_000;
/** The interval between two attempts while the book does not answer. */
const retryMs = 1_000;
/** The interval at which the book is told what requests under way used so far. */
const runningMs = 100;
/** The attempts within which other gateways find the book again after an outage. */
const othersBackWithin = 3;

/**
 * Tells the book of this gateway's requests. The end of an answer is sent at the end of the turn of the event loop, with all
 * demands of the turn, which find the seat and the budget free. Requests that got none wait a moment and are sent together.
 * A settlement that fails is sent again with its number and counts, and is booked once. Its seats are those of the new attempt.
 * While the book does not answer, new ends are added up, and one attempt a second tries what was sent before. Once it answers, the
 * rest follows. Commands of one connection run in order, so that the book knows what was granted meanwhile before it admits more.
 */
export class Settlements {
  readonly #options: Required<Omit<SettlementsOptions, "rowsMax" | "tellMachines">>;
  readonly #outbox: Outbox;
  readonly #underWay = new Map<string, Reservation>();
  readonly #heartbeats: readonly Timer[];
  /** Questions that go out with the next settlement. */
  readonly #asked: { demands: AskedAdmission[]; growing: Growing[] } = { demands: [], growing: [] };
  /** Reservations that are growing, by seat. */
  readonly #growing = new Map<string, Promise<Reservation>>();
  #isAway = false;
  #backAtMs = -Infinity;
  /** The timer of the next settlement, or of the next attempt while the book does not answer. */
  #due: Timer | undefined;
  /** Set while ends, growths or demands wait for the end of this turn of the event loop. */
  #atTurnEnd: NodeJS.Immediate | undefined;
  #flushed: PromiseWithResolvers<void> | undefined;
  #stopped = false;

  constructor({ rowsMax, tellMachines, ...options }: SettlementsOptions) {
    this.#options = { gatherMs: 100, ...options };
    this.#outbox = new Outbox(rowsMax);
    const { clock, log } = options;
    const renewing = clock.every(renewMs, () => {
      this.#outbox.reportLost(log, clock.now());
      if (!this.#isAway) this.#send(this.#underWay.values());
    });
    const telling = clock.every(runningMs, () => {
      tellMachines?.();
      const running = this.#isAway ? [] : this.#outbox.usedSoFar();
      const hasMore = running.length > 0 || this.#outbox.hasPartsDue(clock.now());
      if (hasMore && !this.#isAway) this.#send([], running);
    });
    this.#heartbeats = [renewing, telling];
    this.#after(0, () => this.#send());
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
    const { clock, local } = this.#options;
    return this.#isAway || (local.gateways > 1 && clock.now() - this.#backAtMs < retryMs * othersBackWithin);
  }

  /** Records the reservation of a request under way, so that its seat is renewed. */
  begin(taken: Reservation): void {
    if (taken.kept === "shared" && hasSeat(taken)) this.#underWay.set(taken.seat, taken);
  }

  /** Takes the seat of a reservation that nothing was asked for, at once. */
  occupy(reservation: Reservation): void {
    this.begin(reservation);
    if (!this.#isAway && this.#underWay.has(reservation.seat)) this.#send([reservation]);
  }

  /** Gives back the seat of an answer that could not be resumed. */
  leave(reservation: Reservation): void {
    this.#close({ reservation, ran: true, usedTokens: 0, usedMoney: 0 });
  }

  follow(request: RunningRequest): void {
    this.#outbox.follow(request);
  }

  get running(): Iterable<RunningRequest> {
    return this.#outbox.running;
  }

  end({ reservation, ran, usedTokens, usage, request, running }: SettledRequest): void {
    // The book frees the seat that another gateway took for the answer, also if this one had it for a moment only.
    if (running?.seated?.isResumed && !this.#outbox.wasTold(running)) this.#send([], this.#outbox.usedBy(running));
    if (running !== undefined) this.#outbox.isOver(running);
    this.#outbox.count(usage, request, running?.books);
    const used = { ran, usedTokens, usedMoney: usage.cost };
    const growing = reservation && this.#growing.get(reservation.seat);
    if (growing !== undefined) void growing.then((grown) => this.#close({ reservation: grown, ...used }));
    else if (reservation !== undefined) this.#close({ reservation, ...used });
    if (this.#isAway) return;
    if (ran || reservation !== undefined) this.#sendAtTurnEnd();
    else if (this.#due === undefined && this.#atTurnEnd === undefined)
      this.#after(this.#options.gatherMs, () => this.#send());
  }

  #close(settled: Settled): void {
    const { reservation } = settled;
    this.#underWay.delete(reservation.seat);
    this.#options.local.settle(settled);
    if (reservation.kept === "shared") this.#settle(settled);
  }

  /** Frees the seat of a reservation that the book may or may not have. Gives nothing back. */
  release(reservation: Reservation): void {
    this.#settle({ reservation, ran: true, usedTokens: 0, usedMoney: 0 });
  }

  #settle(settled: Settled): void {
    this.#outbox.settle(settled, this.#options.clock.now());
    if (!this.#isAway) this.#sendAtTurnEnd();
  }

  /** Lets a reservation grow with the next settlement, or by this gateway's share while the book does not answer. */
  grow(growth: Growth): Reservation | Promise<Reservation> {
    const { reservation } = growth;
    if (this.#isAway || reservation.kept === "here") {
      const grown = this.#options.local.grow(growth);
      this.begin(grown);
      return grown;
    }
    const { promise, resolve } = Promise.withResolvers<Reservation>();
    this.#asked.growing.push({ ...growth, resolve });
    this.#growing.set(reservation.seat, promise);
    this.#sendAtTurnEnd();
    return promise;
  }

  #grew({ resolve }: Growing, grown: Reservation): void {
    this.#growing.delete(grown.seat);
    this.begin(grown);
    resolve(grown);
  }

  /** Asks the book for admission with the next settlement. Fails if the book does not answer. */
  ask(demand: Demand): Promise<Admission> {
    const asked: AskedAdmission = { demand, ...Promise.withResolvers<Admission>() };
    this.#asked.demands.push(asked);
    this.#sendAtTurnEnd();
    return asked.promise;
  }

  /** Returns what a book used in a period and what may not be booked yet. */
  spentOf(book: string, period: string, unit: BudgetUnit): number {
    return this.#outbox.spentOf(book, period, unit);
  }

  /** Resolves when all ends are booked. */
  flush(): Promise<void> {
    if (this.#outbox.isAllBooked) return Promise.resolve();
    this.#flushed ??= Promise.withResolvers();
    if (this.#outbox.isWaiting && !this.#isAway) this.#send();
    return this.#flushed.promise;
  }

  /** Books all ends until the deadline aborts. Ends that come later are lost. */
  async stop(deadline: AbortSignal): Promise<void> {
    for (const timer of this.#heartbeats) timer.cancel();
    await untilAborted(deadline, this.flush()).catch(() => undefined);
    this.#stopped = true;
    this.#due?.cancel();
    this.#outbox.giveUp(this.#options.log);
  }

  #after(delayMs: number, run: () => void): void {
    this.#due = this.#options.clock.after(delayMs, () => {
      this.#due = undefined;
      run();
    });
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

  #send(renewed: Iterable<Reservation> = [], running: readonly RunningUsage[] = []): void {
    this.#cancelDue();
    if (this.#stopped) return;
    const { clock, local } = this.#options;
    const sent = this.#outbox.take(local.takeCharges(), running, this.#flushed === undefined ? clock.now() : Infinity);
    const [growing, demands] = [this.#asked.growing.splice(0), this.#asked.demands.splice(0)];
    this.#write(sent, { renewed: [...renewed], growing, demands }).catch((error: unknown) => {
      this.#asked.growing.push(...growing);
      this.#asked.demands.push(...demands);
      this.away(error);
    });
  }

  async #write(sent: Sent, { renewed, growing, demands }: Questions): Promise<void> {
    const { book, gateway, clock, local } = this.#options;
    const { gateways, grown, admissions } = await book.settle({
      gateway,
      ...this.#outbox.settlementOf(sent, clock.now()),
      renewed,
      growing,
      demands: demands.map(({ demand }) => demand),
    });
    for (const [at, each] of growing.entries()) {
      const reservation = grown[at] ?? each.reservation;
      local.adopt(reservation);
      this.#grew(each, reservation);
    }
    for (const [at, { resolve }] of demands.entries()) resolve(admissions[at] as Admission);
    local.gateways = gateways;
    this.#outbox.acknowledge(sent.sequence);
    if (this.#flushed !== undefined && this.#outbox.isAllBooked) this.#flushed.resolve();
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

  /** Sends again what is not acknowledged, or an empty settlement. Ends the outage once all of it is booked. */
  async #retry(): Promise<void> {
    const { clock, log } = this.#options;
    if (this.#outbox.sent.length === 0) this.#outbox.takeNothing();
    try {
      await Promise.all(this.#outbox.sent.map((each) => this.#write(each, noQuestions)));
    } catch (error) {
      return this.away(error);
    }
    if (this.#stopped) return;
    this.#isAway = false;
    this.#backAtMs = clock.now();
    log.info("the book of limits answers again; what requests used meanwhile is booked");
    this.#send(this.#underWay.values());
  }
}
