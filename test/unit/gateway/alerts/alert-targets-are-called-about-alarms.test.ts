import { expect, test } from "vitest";
import type { AlarmCall } from "#shared/alerts/alarm.ts";
import type { AlarmState } from "#shared/alerts/alarm-store.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { AlertRecord } from "#shared/records/alert-record.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { planCalls } from "../../../../services/gateway/alerts/plan-calls.ts";
import { SiteWatch } from "../../../../services/gateway/alerts/watch-site.ts";
import { Roster } from "../../../../services/gateway/fleet/roster.ts";
import { createLog } from "#shared/process/log.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { presenceOf, recordOf } from "../machines-of-a-fleet.ts";

const minuteMs = 60_000;
const timing = timingAt(1);
const { alertIntervalMs: roundMs, alertLeaseMs: leaseMs } = timing;

function targetOf(name: string, fields: Partial<AlertRecord> = {}): AlertRecord {
  const on = ["machine-away", "gateway-away"];
  return {
    name,
    host: `${name}.example`,
    on,
    format: "standard",
    sealed: "",
    version: 1,
    createdAt: 1,
    changedAt: 1,
    ...fields,
  };
}

/** A site with machines, on a clock that the test turns, and the gateways that watch it. */
class SomeSite {
  readonly clock = new TurnableClock();
  readonly calls: (Pick<AlarmCall, "id" | "state"> & {
    readonly at: number;
    readonly by: string;
    readonly to: string;
  })[] = [];
  readonly targets: AlertRecord[] = [targetOf("pager")];
  state: AlarmState = { judgedAt: 0, alarms: [], gateways: {} };
  /** Are called when a gateway has read the alarms, and when it has noted what it is about to do. */
  onRead = (): void => undefined;
  onNote = (): void => undefined;
  /** When another gateway, which only serves, noted last that it is there. */
  otherNotedAt = (): number => this.clock.wall();
  /** Decides on each call, which has arrived if nothing is thrown. */
  answer: (call: AlarmCall, signal: AbortSignal) => void | Promise<void> = () => undefined;
  machines: readonly string[] = ["attic"];
  isMachineUp = true;
  isRedisAway = false;
  /** The gateway that has the lease, and until when. */
  #lease = { gateway: "", untilMs: 0 };

  /** Starts a gateway. A dead one does nothing more, as after a kill. */
  start(gateway: string) {
    const { clock } = this;
    const life = { isDead: false, isCutOff: false, connectedSinceMs: clock.now() };
    const roster = new Roster(timing);
    const asked = <Value>(value: () => Value): Promise<Value> => {
      if (life.isDead) return new Promise(() => undefined);
      return this.isRedisAway
        ? Promise.reject(new Fault("backend_unavailable", { message: "away" }))
        : Promise.resolve(value());
    };
    const watch = new SiteWatch({
      config: { stateDir: "", currency: "EUR" },
      store: {
        keys: {
          gateways: () =>
            asked(() => [{ token: "c", name: "c", version: "0.3.0", startedAt: 1, notedAt: this.otherNotedAt() }]),
          list: () => asked(() => []),
        },
        state: { kind: "redis" },
      } as never,
      broker: {
        get connected() {
          return !life.isCutOff;
        },
        get connectedSinceMs() {
          return life.connectedSinceMs;
        },
      },
      records: { all: () => this.machines.map((name) => recordOf(name, { publicKey: name, pairedAt: 1 })) },
      roster,
      keeper: { plan: () => asked(() => ({ steps: [], told: new Map() })) },
      standings: { teams: { all: () => [] }, people: { all: () => [] } },
      history: { visit: () => asked(() => undefined) },
      certificates: () => [],
      timing,
      targets: { all: () => this.targets },
      sender: {
        send: async (target, call, signal) => {
          this.calls.push({ id: call.id, state: call.state, at: clock.now(), by: gateway, to: target.name });
          await this.answer(call, signal);
        },
      },
      alarms: {
        read: async () => {
          const state = await asked(() => this.state);
          this.onRead();
          return state;
        },
        change: async (make) => {
          this.state = await asked(() => structuredClone(make(this.state)));
          this.onNote();
        },
      },
      lease: {
        hold: () =>
          asked(() => {
            if (this.#lease.gateway !== gateway && clock.now() < this.#lease.untilMs) return false;
            this.#lease = { gateway, untilMs: clock.now() + leaseMs };
            return true;
          }),
      },
      gateway,
      onCall: () => undefined,
      clock,
      log: createLog({ level: "silent", name: "test" }),
    });
    clock.every(1_000, () => {
      if (!this.isMachineUp || life.isDead || life.isCutOff) return;
      for (const machine of this.machines) roster.announced(presenceOf(machine), clock.now());
    });
    clock.every(roundMs, () => life.isDead || watch.look());
    return { life, watch, roster };
  }

  pass(ms: number): Promise<void> {
    return this.clock.advanceAwaiting(ms);
  }

  /** The calls so far, as `state to-target`. */
  get told(): readonly string[] {
    return this.calls.map(({ state, to }) => `${state} ${to}`);
  }
}

test("of two gateways one calls once when a machine has been away for two minutes, and once when it is back", async () => {
  const site = new SomeSite();
  site.start("one");
  site.start("two");
  await site.pass(minuteMs);
  site.isMachineUp = false;
  await site.pass(110_000);
  expect(site.told).toEqual([]);
  await site.pass(30_000);
  expect(site.told).toEqual(["began pager"]);
  await site.pass(60 * minuteMs);
  site.isMachineUp = true;
  await site.pass(10 * minuteMs);
  expect(site.told).toEqual(["began pager", "over pager"]);
  expect(new Set(site.calls.map(({ by }) => by)).size).toBe(1);
});

test("each target waits as long as it says, a new one is told of open alarms, and an alarm that was not told ends silently", async () => {
  const site = new SomeSite();
  site.targets.push(targetOf("quick", { afterMs: 30_000 }), targetOf("budgets", { on: ["budget"] }));
  site.start("one");
  await site.pass(minuteMs);
  site.isMachineUp = false;
  await site.pass(minuteMs);
  expect(site.told).toEqual(["began quick"]);
  site.isMachineUp = true;
  await site.pass(minuteMs);
  expect(site.told).toEqual(["began quick", "over quick"]);
  site.isMachineUp = false;
  await site.pass(5 * minuteMs);
  site.targets.push(targetOf("new"));
  await site.pass(minuteMs);
  expect(site.told.slice(2)).toEqual(["began quick", "began pager", "began new"]);
});

test("a call that fails is repeated with growing waits for a day under one id, and its end is not told before it", async () => {
  const site = new SomeSite();
  site.answer = () => {
    throw new Fault("upstream_error", { message: "500" });
  };
  site.start("one");
  await site.pass(minuteMs);
  site.isMachineUp = false;
  await site.pass(5 * minuteMs);
  site.isMachineUp = true;
  await site.pass(26 * 60 * minuteMs);
  expect(new Set(site.calls.map(({ id, state }) => `${id} ${state}`)).size).toBe(1);
  const waits = site.calls.map(({ at }, index) => at - (site.calls[index - 1]?.at ?? at)).slice(1);
  expect(waits.slice(0, 4)).toEqual([20_000, 30_000, 60_000, 120_000]);
  expect(waits.at(-1)).toBe(60 * minuteMs);
  expect(waits.reduce((sum, each) => sum + each, 0) / minuteMs / 60).toBeCloseTo(24, 0);
  expect(site.state.alarms).toEqual([]);
});

test("a hundred alarms at once are told in several rounds, and those that end before their turn are not", async () => {
  const site = new SomeSite();
  site.machines = Array.from({ length: 100 }, (_, at) => `machine-${at}`);
  site.start("one");
  for (const [downMs, calls] of [
    [5 * minuteMs, 200],
    [2 * minuteMs, 328],
  ] as const) {
    await site.pass(minuteMs);
    site.isMachineUp = false;
    await site.pass(downMs);
    site.isMachineUp = true;
    await site.pass(5 * minuteMs);
    expect(site.calls.length).toBe(calls);
  }
  expect(new Set(site.calls.map(({ id }) => id)).size).toBe(328);
});

test("a call that arrives at last is followed by the one about the end", async () => {
  const site = new SomeSite();
  let fails = 2;
  site.answer = () => {
    if ((fails -= 1) >= 0) throw new Fault("upstream_error", { message: "500" });
  };
  site.start("one");
  await site.pass(minuteMs);
  site.isMachineUp = false;
  await site.pass(130_000);
  site.isMachineUp = true;
  await site.pass(10 * minuteMs);
  expect(site.told).toEqual(["began pager", "began pager", "began pager", "over pager"]);
});

test("another gateway repeats the call of one that is killed while it calls, under the same id", async () => {
  const site = new SomeSite();
  const one = site.start("one");
  await site.pass(roundMs / 2);
  site.start("two");
  await site.pass(minuteMs);
  site.answer = () => {
    site.answer = () => undefined;
    one.life.isDead = true;
    return new Promise(() => undefined);
  };
  site.isMachineUp = false;
  await site.pass(5 * minuteMs);
  expect(site.calls.map(({ by }) => by)).toEqual(["one", "two"]);
  expect(new Set(site.calls.map(({ id }) => id)).size).toBe(1);
});

test("a gateway without the lease calls no more: its call is cut off, and one that stood still before it does not begin", async () => {
  const site = new SomeSite();
  site.start("one");
  await site.pass(minuteMs);
  site.isMachineUp = false;
  const reasons: string[] = [];
  site.answer = (_call, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reasons.push(String(signal.reason));
        reject(signal.reason);
      });
    });
  await site.pass(2 * minuteMs);
  expect([site.told, reasons]).toEqual([["began pager"], []]);
  await site.pass(leaseMs);
  site.onNote = () => site.clock.standStill(leaseMs);
  await site.pass(roundMs);
  expect([site.told, reasons]).toEqual([["began pager"], [expect.stringContaining("no answer came")]]);
  site.onNote = () => undefined;
  site.onRead = () => site.clock.standStill(leaseMs);
  const { state } = site;
  await site.pass(roundMs);
  expect(site.state).toEqual(state);
});

test("no alarm follows from an outage of Redis or NATS, from a process that stood still, or from the start of a gateway", async () => {
  const site = new SomeSite();
  /** The machine takes nearly two minutes until it is heard again. */
  const returnLate = async (): Promise<void> => {
    site.isMachineUp = false;
    await site.pass(100_000);
    site.isMachineUp = true;
    await site.pass(minuteMs);
  };
  const { life } = site.start("one");
  await site.pass(minuteMs);
  site.isRedisAway = true;
  const notedAt = site.clock.wall();
  site.otherNotedAt = () => notedAt;
  await site.pass(10 * minuteMs);
  site.isRedisAway = false;
  await site.pass(20_000);
  site.otherNotedAt = () => site.clock.wall();
  await site.pass(minuteMs);
  life.isCutOff = true;
  await site.pass(10 * minuteMs);
  [life.isCutOff, life.connectedSinceMs] = [false, site.clock.now()];
  await returnLate();
  site.clock.standStill(10 * minuteMs);
  await returnLate();
  life.isDead = true;
  site.start("two");
  await returnLate();
  expect(site.calls).toEqual([]);
});

test("an alarm is over once, although its gateway restarts or is cut off meanwhile", async () => {
  const site = new SomeSite();
  const one = site.start("one");
  await site.pass(minuteMs);
  site.isMachineUp = false;
  await site.pass(5 * minuteMs);
  one.life.isDead = true;
  const two = site.start("two");
  await site.pass(5 * minuteMs);
  two.life.isCutOff = true;
  await site.pass(5 * minuteMs);
  [two.life.isCutOff, two.life.connectedSinceMs] = [false, site.clock.now()];
  await site.pass(5 * minuteMs);
  expect(site.told).toEqual(["began pager"]);
  site.isMachineUp = true;
  await site.pass(5 * minuteMs);
  expect(site.told).toEqual(["began pager", "over pager"]);
});

test("an alarm is not over because its gateway stood still for a moment, after which silence counts anew", async () => {
  const site = new SomeSite();
  const { roster } = site.start("one");
  await site.pass(minuteMs);
  site.isMachineUp = false;
  await site.pass(5 * minuteMs);
  for (let second = 0; second < 10; second += 1) {
    roster.reconnected(site.clock.now());
    await site.pass(roundMs + 1_000);
  }
  await site.pass(minuteMs);
  expect(site.told).toEqual(["began pager"]);
});

test("a thousand used up budgets hide no machine that is away", () => {
  const budgets = Array.from({ length: 1_200 }, (_, at) => ({ subject: `key ${at}`, text: "It is used up." }));
  const machine = { subject: "attic", text: "The machine attic is away." };
  const options = { targets: [targetOf("pager", { on: ["budget", "machine-away"] })], nowMs: 0, scale: 1 };
  const empty = { judgedAt: 0, alarms: [], gateways: {} };
  const full = planCalls(empty, { budget: budgets }, options);
  const { state, isFull } = planCalls(full.state, { budget: budgets, "machine-away": [machine] }, options);
  expect([state.alarms.length, state.alarms.at(-1)?.subject, isFull]).toEqual([1_001, "attic", true]);
});
