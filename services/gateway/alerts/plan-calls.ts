/** Decides which target is called about which alarm, and when. Pure. */
import { hash } from "node:crypto";
import type { AlarmCall, AlarmKind } from "#shared/alerts/alarm.ts";
import type { AlarmState, KeptAlarm, PlannedCall } from "#shared/alerts/alarm-store.ts";
import type { AlertRecord } from "#shared/records/alert-record.ts";

/** Something that is wrong now. */
export interface Condition {
  readonly subject: string;
  readonly text: string;
  /** Undefined for one that begins when it is seen. */
  readonly since?: number;
}

/** The conditions by kind. Alarms of a kind that was not judged stay as they are. */
export type Conditions = { readonly [Kind in AlarmKind]?: readonly Condition[] | undefined };

/** The time that a condition lasts before a target is called. Other kinds have none. */
const waits: { readonly [Kind in AlarmKind]?: number } = {
  "machine-away": 120_000,
  "keep-unmet": 300_000,
  "gateway-away": 30_000,
};
/** Bounds the alarms of one kind, so that used up budgets hide no machine. Others begin when one of them is over. */
export const alarmsMax = 1_000;
/** Bounds the calls of one round. Others go out in the next one. */
const callsMax = 64;
/** The wait after the first failed call, which is longer than a call takes. The next ones are each twice as long, up to an hour. */
const repeatMs = 15_000;
const repeatMsMax = 3_600_000;
/** The attempts of one call, which take a day. */
export const attemptsMax = 32;

interface PlanOptions {
  readonly targets: readonly AlertRecord[];
  readonly nowMs: number;
  /** Multiplies all times, for tests. */
  readonly scale: number;
}

/** A call to be sent now. */
export interface DueCall {
  readonly target: AlertRecord;
  readonly call: AlarmCall;
  readonly attempts: number;
}

/**
 * Begins and ends alarms, and returns the calls that are due with the state to note before they are sent: it has the next attempt
 * of each, so that another gateway repeats them if this one is killed. A new target is called about open alarms too. An alarm
 * that ends before anybody was called about it is forgotten, as is one that no target wants.
 */
export function planCalls(state: AlarmState, conditions: Conditions, { targets, nowMs, scale }: PlanOptions) {
  const alarms = state.alarms.map((alarm) => {
    const isOver = conditions[alarm.kind]?.every(({ subject }) => subject !== alarm.subject) ?? false;
    return isOver ? { ...alarm, overAt: alarm.overAt ?? nowMs } : alarm;
  });
  const open = new Set(alarms.map(({ kind, subject, overAt }) => overAt === undefined && `${kind} ${subject}`));
  let isFull = false;
  for (const [kind, found = []] of Object.entries(conditions) as [AlarmKind, Conditions[AlarmKind]][]) {
    let left = alarmsMax - alarms.filter((each) => each.kind === kind).length;
    for (const { subject, text, since: beganAt = nowMs } of found) {
      const name = `${kind} ${subject}`;
      if (open.has(name)) continue;
      isFull ||= left <= 0;
      if (left <= 0) break;
      left -= 1;
      alarms.push({ id: `${name} ${Math.round(beganAt)}`, kind, subject, beganAt, text, calls: {} });
    }
  }
  const due: DueCall[] = [];
  const kept = alarms.flatMap((alarm) => {
    const calls: Record<string, PlannedCall> = {};
    for (const target of targets) {
      const call = nextCall(alarm, target, { nowMs, scale });
      if (call === undefined) continue;
      calls[idOf(target)] = call;
      if (call.outcome !== "due" || call.nextAt > nowMs || due.length >= callsMax) continue;
      const attempts = call.attempts + 1;
      const nextAt = nowMs + Math.min(repeatMs * 2 ** call.attempts, repeatMsMax) * scale;
      calls[idOf(target)] = { ...call, attempts, nextAt, outcome: attempts < attemptsMax ? "due" : "given-up" };
      due.push({ target, call: alarmCall(alarm, call.state, target), attempts });
    }
    const isOpen = alarm.overAt === undefined && targets.some(({ on }) => on.includes(alarm.kind));
    return isOpen || Object.values(calls).some(({ outcome }) => outcome === "due") ? [{ ...alarm, calls }] : [];
  });
  return { state: { ...state, alarms: kept }, due, isFull };
}

/** Returns the latest call of a target about an alarm, or the one that it is to get now. */
function nextCall(
  { kind, beganAt, overAt, calls }: KeptAlarm,
  target: AlertRecord,
  { nowMs, scale }: Omit<PlanOptions, "targets">,
): PlannedCall | undefined {
  const call = calls[idOf(target)];
  const planned = { outcome: "due", attempts: 0, nextAt: nowMs } as const;
  if (overAt === undefined) {
    const wait = waits[kind];
    const waitMs = wait === undefined ? 0 : (target.afterMs ?? wait * scale);
    const isDue = target.on.includes(kind) && nowMs - beganAt >= waitMs;
    return call ?? (isDue ? { state: "began", ...planned } : undefined);
  }
  if (call?.state === "began" && call.outcome === "sent") return { state: "over", ...planned };
  // A call that failed may have arrived.
  return call?.state === "began" && call.attempts === 0 ? undefined : call;
}

/** Names a target in the state. One that was removed and made again is another one. */
function idOf({ name, createdAt }: AlertRecord): string {
  return `${name} ${createdAt}`;
}

function alarmCall(alarm: KeptAlarm, state: PlannedCall["state"], target: AlertRecord): AlarmCall {
  const { id, kind, subject, beganAt, overAt = beganAt, text } = alarm;
  const name = hash("sha256", `${id} ${idOf(target)} ${state}`).slice(0, 32);
  const at = state === "over" ? overAt : beganAt;
  return { id: `msg_${name}`, state, alarm: { id, kind, subject, beganAt, text }, at };
}

/** Notes the calls that have arrived. */
export function noteSent(state: AlarmState, sent: readonly DueCall[]): AlarmState {
  const alarms = state.alarms.map((alarm) => {
    const calls = { ...alarm.calls };
    for (const { target, call } of sent) {
      const planned = calls[idOf(target)];
      const isIt = call.alarm.id === alarm.id && planned?.state === call.state;
      if (isIt) calls[idOf(target)] = { ...planned, outcome: "sent" };
    }
    return { ...alarm, calls };
  });
  return { ...state, alarms };
}
