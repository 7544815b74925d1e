/** Decides what is wrong with a site. Pure. Times are milliseconds since 1970. */
import type { Alarm } from "#shared/alerts/alarm.ts";
import type { AlarmState, KnownGateway } from "#shared/alerts/alarm-store.ts";
import { faultEntry, isFaultCode } from "#shared/fault/fault.ts";
import type { Row } from "#shared/history/sums.ts";
import { moneyText } from "#shared/money/money.ts";
import { dayMs } from "#shared/process/clock.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { machineState } from "#shared/records/shown-machine.ts";
import type { SiteGateway } from "#shared/records/site-gateways.ts";
import type { RosterMachine } from "../fleet/roster.ts";
import type { Budget } from "../limits/budgets.ts";
import type { KeepStep } from "../placing/plan-keeps.ts";
import type { Condition } from "./plan-calls.ts";

interface Times {
  readonly nowMs: number;
  /** Since when this gateway has heard the others without interruption. Earlier silence does not count. */
  readonly heardSinceMs: number;
}

/**
 * A machine that was paired is expected, unless it is cordoned, drained or revoked. Another one is expected from the time when
 * this gateway heard it until it says goodbye. `open` has the alarms of another gateway, whose machines may be unknown here.
 */
export function awayMachines(
  records: Iterable<MachineRecord>,
  heard: readonly RosterMachine[],
  open: readonly Pick<Alarm, "subject" | "beganAt">[],
  { nowMs, heardSinceMs, hereToWallMs }: Times & { readonly hereToWallMs: number },
): readonly Condition[] {
  const silentSince = new Map<string, number>();
  const known = new Set(heard.map(({ presence }) => presence.machine));
  for (const each of records) {
    known.add(each.name);
    if (machineState(each, nowMs) === "paired") silentSince.set(each.name, each.pairedAt ?? 0);
  }
  for (const { subject, beganAt } of open)
    if (!known.has(subject) && beganAt < heardSinceMs && nowMs - beganAt < dayMs) silentSince.set(subject, beganAt);
  for (const { presence, status, heardAtMs, isCordoned } of heard) {
    const { machine, state } = presence;
    const isExpected = silentSince.delete(machine) || (state !== "gone" && !isCordoned);
    if (status === "offline" && isExpected) silentSince.set(machine, heardAtMs + hereToWallMs);
  }
  return [...silentSince].map(([subject, since]) => {
    return { subject, text: `The machine ${subject} is away.`, since: Math.max(since, heardSinceMs) };
  });
}

/** Copies that a machine holds, loads or pulls, or that somebody unloaded, are not unmet. */
const unmetStates: ReadonlySet<KeepStep["state"]> = new Set(["unmet", "missing", "failed", "waits"]);
/** A reason may name every machine. */
const whyCharactersMax = 200;

export function unmetKeeps(steps: readonly KeepStep[]): readonly Condition[] {
  const byModel = Map.groupBy(
    steps.filter(({ state }) => unmetStates.has(state)),
    ({ model }) => model,
  );
  return [...byModel].map(([subject, copies]) => {
    const { machine, why } = copies[0] as KeepStep;
    const reason = `${machine === undefined ? "" : `${machine} `}${why}`.slice(0, whyCharactersMax);
    return { subject, text: `The kept model ${subject} lacks copies in memory (${copies.length}): ${reason}.` };
  });
}

/** A budget of a key, a team or a person, and what is used of it. */
export interface BudgetUse extends Budget {
  /** The owner of the budget: `team research`. */
  readonly of: string;
  readonly period: string;
  readonly used: number;
}

export function spentShares({ of, unit, limit, period, used }: BudgetUse, currency: string): readonly Condition[] {
  const amount = unit === "money" ? moneyText(limit, currency) : `${limit} tokens`;
  return [80, 100].flatMap((percent) => {
    const text = `The ${of} has used ${percent} % of its budget of ${amount} for ${period}.`;
    return used * 100 < limit * percent ? [] : { subject: `${of}, ${percent} % of ${unit} for ${period}`, text };
  });
}

/** An alarm that is open stays so until both numbers have fallen to half. */
export function failedRequests({ counts: [requests = 0], failures }: Row, isOpen: boolean): readonly Condition[] {
  const codes = [...failures].filter(([code]) => isFaultCode(code) && faultEntry(code).status >= 500);
  const failed = codes.reduce((sum, [, count]) => sum + count, 0) * (isOpen ? 2 : 1);
  if (failed < 20 || failed < requests * 0.05) return [];
  const most = codes.reduce((one, other) => (other[1] > one[1] ? other : one))[0];
  const text = `Of ${requests} requests within 5 minutes, at least 5 % ended with a status of 5xx, most with ${most}.`;
  return [{ subject: "requests", text }];
}

/** `free` is the share of the disk. An alarm that is open stays so until a little more is free. */
export function fullDisk(free: number, isOpen: boolean): readonly Condition[] {
  const text = `The disk of the state folder has ${Math.floor(free * 100)} % left.`;
  return free < (isOpen ? 0.06 : 0.05) ? [{ subject: "state folder", text }] : [];
}

/** A certificate, as `status` shows it. */
interface ShownCertificate {
  readonly setting: string;
  readonly names: string;
  readonly expires_at: string;
}

export function endingCertificates(all: readonly ShownCertificate[], nowMs: number): readonly Condition[] {
  return all.flatMap(({ setting, names, expires_at: endsAt }) => {
    const text = `The certificate of ${setting} (${names}) ends at ${endsAt}.`;
    return Date.parse(endsAt) - nowMs < 14 * dayMs ? { subject: `${setting} (${names})`, text } : [];
  });
}

/** A gateway notes that it is there every few seconds. */
const notedForMs = 7_000;

/** Returns the gateways that are there, and those that are away without a goodbye, until one has come in its place or a day has passed. */
export function followGateways(
  { gateways: known, judgedAt }: AlarmState,
  there: readonly SiteGateway[],
  nowMs: number,
): AlarmState["gateways"] {
  const followed: Record<string, KnownGateway> = {};
  for (const { token, name, notedAt = nowMs } of there) {
    const { seenAt = nowMs, left } = known[token] ?? {};
    const isAway = !left && nowMs - notedAt >= notedForMs;
    followed[token] = { name, seenAt, ...(left && { left }), ...(isAway && { awayAt: notedAt }) };
  }
  for (const [token, each] of Object.entries(known))
    if (!each.left && followed[token] === undefined) followed[token] = { awayAt: judgedAt, ...each };
  const isReplaced = ({ seenAt, awayAt = Infinity }: KnownGateway): boolean =>
    there.some(({ token, startedAt = 0 }) => startedAt > awayAt && (followed[token]?.seenAt ?? 0) > seenAt);
  const kept = Object.entries(followed).filter(
    ([, each]) => nowMs - (each.awayAt ?? nowMs) < dayMs && !isReplaced(each),
  );
  return Object.fromEntries(kept);
}

export function awayGateways(gateways: AlarmState["gateways"], heardSinceMs: number): readonly Condition[] {
  return Object.values(gateways).flatMap(({ name, awayAt }) => {
    const text = `The gateway ${name} is away and did not say goodbye.`;
    return awayAt === undefined ? [] : { subject: name, text, since: Math.max(awayAt, heardSinceMs) };
  });
}
