import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { UsageRow } from "#shared/usage/usage-row.ts";
import type { Endings, Telling } from "../limits/endings.ts";
import { needsSeat, type Hold, type Settled } from "../limits/limits.ts";
import { batchName, type Books } from "./books.ts";
import { Gathering } from "./gathering.ts";

interface SettlementsOptions {
  readonly books: Books;
  /** The limits in this gateway's memory, which count its holds. */
  readonly limits: { settle(settled: Settled): void };
  /** The token of this boot of this gateway. Each boot needs a fresh one, because it numbers its batches from one. */
  readonly gateway: string;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  /** At most one batch goes out in this time. */
  readonly gatherMs?: number;
  /** A batch goes out at least this often, and renews the seats of requests under way. */
  readonly renewMs?: number;
  /** The wait before a batch that was not written is sent again. */
  readonly resendMs?: number;
  /** The most rows that are gathered while none can be written. */
  readonly rowsMax?: number;
}

interface EndedRequest {
  /** Absent for a request that was refused before it held anything, or whose key has no limits. */
  readonly hold?: Hold | undefined;
  /** True if a machine took the request. */
  readonly ran: boolean;
  readonly usedTokens: number;
  readonly usage: UsageRow;
}

interface Sending {
  readonly sequence: number;
  readonly gathered: Gathering;
}

/** The most rows that wait to be written, each of a day, a key and a model. As many again may be under way. */
export const unwrittenRowsMax = 10_000;
/**
 * Holds of requests that ended longer ago need no settling. Their seats have expired, and their tokens reserved of the
 * limit per minute have drained.
 */
const holdsMatterForMs = 60_000;

/**
 * The ends of this gateway's requests, until they are written in the books. This class alone owns the gathered ends.
 * The first end after a quiet time is sent at once; those that follow go in one batch every tenth of a second. One
 * batch is under way at a time. A batch that fails is sent again until it is written. Its number and its counts stay
 * the same, so that nothing is counted twice. Only the seats that it frees and renews are those of the new attempt.
 */
export class Settlements implements Endings {
  readonly #options: Required<SettlementsOptions>;
  readonly #underWay = new Map<string, Hold>();
  readonly #heartbeat: Timer;
  #gathering: Gathering;
  #sending: Sending | undefined;
  #sequence = 0;
  /** The timer of the next batch, or of the next attempt at the batch under way. */
  #due: Timer | undefined;
  #mayAtMs = -Infinity;
  #heartbeatDue = true;
  #gateways = 1;
  #failing = false;
  #uncounted = 0;
  #flushed: PromiseWithResolvers<void> | undefined;
  #stopped = false;

  constructor(options: SettlementsOptions) {
    this.#options = { gatherMs: 100, renewMs: 5_000, resendMs: 1_000, rowsMax: unwrittenRowsMax, ...options };
    this.#gathering = new Gathering(this.#options.rowsMax);
    this.#heartbeat = this.#options.clock.every(this.#options.renewMs, () => this.#beat());
    this.#schedule();
  }

  /** The number of gateways, as the books last reported it. */
  get gateways(): number {
    return this.#gateways;
  }

  /** Records the hold of a request that begins, so that its seat is renewed. */
  begin(hold: Hold): void {
    if (hold.kept === "shared" && needsSeat(hold.limits)) this.#underWay.set(hold.seat, hold);
  }

  end({ hold, ran, usedTokens, usage }: EndedRequest): void {
    if (hold !== undefined) {
      this.#underWay.delete(hold.seat);
      const settled = { hold, ran, usedTokens };
      this.#options.limits.settle(settled);
      if (hold.kept === "shared") this.#gathering.settle(settled, this.#options.clock.now());
    }
    if (this.#gathering.count(usage) === "full") this.#uncounted += usage.requests;
    this.#schedule();
  }

  /** Frees the seat of a hold that the store may or may not have made. Gives nothing back. */
  release(hold: Hold): void {
    this.#gathering.settle({ hold, ran: true, usedTokens: hold.tokens }, this.#options.clock.now());
    this.#schedule();
  }

  /** Gives back a whole hold that no request has needed. */
  giveBack(hold: Hold): void {
    this.#gathering.settle({ hold, ran: false, usedTokens: 0 }, this.#options.clock.now());
    this.#schedule();
  }

  tell(keyId: string, endsMax: number): readonly Telling[] {
    const tellings: Telling[] = [];
    let left = endsMax;
    const { gateway } = this.#options;
    const tellOf = (gathering: Gathering, sequence: number): void => {
      const told = gathering.tell(keyId, left);
      if (told === undefined) return;
      left -= told.ended.length;
      tellings.push({ ...told, batch: batchName({ gateway, sequence }) });
    };
    if (this.#sending !== undefined) tellOf(this.#sending.gathered, this.#sending.sequence);
    tellOf(this.#gathering, this.#sequence + 1);
    return tellings;
  }

  /** Returns the tokens that a key used of its budget in a period and that may not be written yet. */
  spentOf(keyId: string, period: string): number {
    return this.#unwritten().reduce((tokens, gathering) => tokens + gathering.spentOf(keyId, period), 0);
  }

  /** Resolves when all ends are written. */
  flush(): Promise<void> {
    if (this.#allWritten()) return Promise.resolve();
    this.#flushed ??= Promise.withResolvers();
    if (this.#sending === undefined) this.#send();
    return this.#flushed.promise;
  }

  /** Writes all ends that were gathered, until the deadline aborts. Ends that come later are lost. */
  async stop(deadline: AbortSignal): Promise<void> {
    this.#heartbeat.cancel();
    await Promise.race([this.flush(), aborted(deadline)]);
    this.#stopped = true;
    this.#due?.cancel();
    this.#tellUncounted("unwrittenRowsMax rows waited to be written");
    this.#uncounted = this.#unwritten().reduce((requests, gathering) => requests + gathering.requests, 0);
    this.#tellUncounted("they could not be written before this gateway had to stop");
  }

  #unwritten(): readonly Gathering[] {
    return this.#sending === undefined ? [this.#gathering] : [this.#sending.gathered, this.#gathering];
  }

  #allWritten(): boolean {
    return this.#sending === undefined && this.#gathering.isEmpty;
  }

  #beat(): void {
    this.#tellUncounted("unwrittenRowsMax rows waited to be written");
    this.#heartbeatDue = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#stopped || this.#sending !== undefined || this.#due !== undefined) return;
    if (this.#gathering.isEmpty && !this.#heartbeatDue) return;
    this.#at(this.#mayAtMs, () => this.#send());
  }

  #at(atMs: number, run: () => void): void {
    const { clock } = this.#options;
    this.#due = clock.after(Math.max(0, atMs - clock.now()), () => {
      this.#due = undefined;
      run();
    });
  }

  #send(): void {
    this.#due?.cancel();
    this.#due = undefined;
    const { clock, gatherMs, rowsMax } = this.#options;
    this.#mayAtMs = clock.now() + gatherMs;
    this.#sequence += 1;
    this.#sending = { sequence: this.#sequence, gathered: this.#gathering };
    this.#gathering = new Gathering(rowsMax);
    void this.#write(this.#sending);
  }

  async #write(sending: Sending): Promise<void> {
    try {
      this.#gateways = await this.#attempt(sending);
      this.#tellWritten();
    } catch (error) {
      this.#tellUnwritten(error);
      this.#mayAtMs = this.#options.clock.now() + this.#options.resendMs;
      if (!sending.gathered.isEmpty) {
        if (!this.#stopped) this.#at(this.#mayAtMs, () => void this.#write(sending));
        return;
      }
    }
    this.#sending = undefined;
    this.#goOn();
  }

  async #attempt({ sequence, gathered }: Sending): Promise<number> {
    const { books, gateway, clock } = this.#options;
    const renews = this.#heartbeatDue;
    this.#heartbeatDue = false;
    try {
      const { gateways } = await books.write({
        gateway,
        sequence,
        settled: gathered.endedSince(clock.now() - holdsMatterForMs),
        toldOf: gathered.toldOf(),
        renewed: renews ? [...this.#underWay.values()] : [],
        spent: gathered.spent(),
        usage: gathered.usage(),
      });
      return gateways;
    } catch (error) {
      this.#heartbeatDue = true;
      throw error;
    }
  }

  #goOn(): void {
    if (this.#stopped) return;
    if (this.#flushed === undefined) this.#schedule();
    else if (this.#allWritten()) {
      this.#flushed.resolve();
      this.#flushed = undefined;
    } else this.#send();
  }

  #tellUnwritten(error: unknown): void {
    if (!this.#failing) this.#options.log.warn({ err: error }, "what requests used cannot be written; it is kept");
    this.#failing = true;
  }

  #tellWritten(): void {
    if (this.#failing) this.#options.log.info("what requests used is written again");
    this.#failing = false;
  }

  #tellUncounted(because: string): void {
    const requests = this.#uncounted;
    if (requests > 0) this.#options.log.error({ requests }, `${requests} requests were not counted: ${because}`);
    this.#uncounted = 0;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
