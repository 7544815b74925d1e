import type { AlarmCall, AlarmKind } from "#shared/alerts/alarm.ts";
import type { AlarmStore } from "#shared/alerts/alarm-store.ts";
import { Fault } from "#shared/fault/fault.ts";
import { abortAfter, untilAborted } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { AlertRecord } from "#shared/records/alert-record.ts";
import type { Lease } from "../placing/redis-lease.ts";
import { followGateways } from "./judge-site.ts";
import { alarmsMax, attemptsMax, type DueCall, noteSent, planCalls } from "./plan-calls.ts";
import { readConditions, type WatchedSite } from "./read-conditions.ts";

export interface WatchParts extends WatchedSite {
  readonly targets: { all(): readonly AlertRecord[] };
  readonly sender: { send(target: AlertRecord, call: AlarmCall, signal: AbortSignal): Promise<unknown> };
  readonly alarms: AlarmStore;
  /** Lets one gateway at a time judge the site and call. */
  readonly lease: Lease;
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly onCall: (kind: AlarmKind, outcome: "sent" | "failed") => void;
  readonly log: Log;
}

/** One round of these reads all that an alarm may need, and the others what costs little. */
const roundsPerWhole = 6;

/**
 * Looks what is wrong with the site, and calls its targets. One gateway at a time does that. The store decides who calls, and
 * not the memory of a gateway: an attempt is noted before it begins.
 */
export class SiteWatch {
  readonly #parts: WatchParts;
  #round: Promise<void> | undefined;
  #lookedAtMs = -Infinity;
  /** Rounds in which this gateway judged the site. */
  #rounds = 0;
  /** Since when this gateway has been at work and the store has answered. */
  #sinceMs: number | undefined;
  /** Calls that have arrived, until the store has a note of them. */
  #sent: readonly DueCall[] = [];

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  /** Begins a round, unless one is under way or nobody is to be called. */
  look(): void {
    const { targets, clock, timing, log } = this.#parts;
    if (targets.all().length === 0) return;
    const nowMs = clock.now();
    // A process that stood still has heard nobody meanwhile.
    if (nowMs - this.#lookedAtMs > 3 * timing.alertIntervalMs) this.#sinceMs = undefined;
    this.#lookedAtMs = nowMs;
    this.#round ??= this.#judgeAndCall()
      .catch((error: unknown) => {
        this.#sinceMs = undefined;
        const isAway = error instanceof Fault && error.code === "backend_unavailable";
        log[isAway ? "debug" : "error"]({ err: error }, "it was not judged what is wrong with the site");
      })
      .finally(() => (this.#round = undefined));
  }

  /** Waits for calls that are under way, and says goodbye to the other gateways. */
  async stop(deadline: AbortSignal): Promise<void> {
    const { alarms, store, gateway } = this.#parts;
    await untilAborted(deadline, this.#round ?? Promise.resolve()).catch(() => undefined);
    if (store.state.kind === "sqlite") return;
    const own = { [gateway]: { name: gateway, seenAt: 0, left: true } } as const;
    await alarms.change((state) => ({ ...state, gateways: { ...state.gateways, ...own } }));
  }

  async #judgeAndCall(): Promise<void> {
    const { alarms, lease, clock, timing, log } = this.#parts;
    await this.#noteSent();
    const heldAtMs = clock.now();
    const isHeld = await lease.hold();
    this.#sinceMs ??= heldAtMs;
    if (!isHeld) return;
    const targets = this.#parts.targets.all();
    const kinds = new Set(targets.flatMap(({ on }) => on));
    const isWhole = this.#rounds % roundsPerWhole === 0;
    const asked = { kinds, isWhole, sinceMs: this.#sinceMs };
    const { conditions, there, nowMs } = await readConditions(this.#parts, await alarms.read(), asked);
    this.#rounds += 1;
    // The file of a state folder is not written for the sake of a time that nobody asks for.
    const judgedAt = there === undefined ? 0 : nowMs;
    const options = { targets, nowMs, scale: timing.scale };
    // A process that stood still meanwhile may have lost the lease.
    const leftMs = (): number => heldAtMs + timing.alertLeaseMs - clock.now();
    let due: readonly DueCall[] = [];
    await alarms.change((state) => {
      if (leftMs() <= 0) return state;
      const gateways = followGateways(state, there ?? [], nowMs);
      const planned = planCalls({ ...state, judgedAt, gateways }, conditions, options);
      due = planned.due;
      if (isWhole && planned.isFull)
        log.warn(`there are ${alarmsMax} alarms of one kind (alarmsMax): further ones begin when some are over`);
      return planned.state;
    });
    if (leftMs() <= 0) return;
    using lost = abortAfter(clock, leftMs(), leaseEnded);
    const called = await Promise.all(due.map((each) => this.#call(each, lost.signal)));
    this.#sent = due.filter((_, at) => called[at]);
    await this.#noteSent();
  }

  /** Returns true if the call has arrived. */
  async #call({ target, call, attempts }: DueCall, signal: AbortSignal): Promise<boolean> {
    const { sender, onCall, log } = this.#parts;
    const { state, alarm } = call;
    const fields = {
      alarm: alarm.kind,
      subject: alarm.subject,
      state,
      target: target.name,
      host: target.host,
      attempts,
    };
    try {
      await sender.send(target, call, signal);
      onCall(alarm.kind, "sent");
      log.info(fields, "an alert target was called");
      return true;
    } catch (error) {
      onCall(alarm.kind, "failed");
      const next = attempts < attemptsMax ? "the call is repeated" : `the call is given up after a day (attemptsMax)`;
      log.warn({ ...fields, reason: Fault.from(error).message }, `an alert target was called in vain; ${next}`);
      return false;
    }
  }

  async #noteSent(): Promise<void> {
    if (this.#sent.length === 0) return;
    await this.#parts.alarms.change((state) => noteSent(state, this.#sent));
    this.#sent = [];
  }
}

function leaseEnded(): Fault {
  return new Fault("upstream_error", { message: "no answer came while this gateway was the one that calls" });
}
