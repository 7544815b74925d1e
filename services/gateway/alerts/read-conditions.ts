import { statfs } from "node:fs/promises";
import type { AlarmKind } from "#shared/alerts/alarm.ts";
import type { AlarmState } from "#shared/alerts/alarm-store.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { type HistoryReader, slotLengths } from "#shared/history/history.ts";
import { Row, totalSeries } from "#shared/history/sums.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { type KeyLimits, keyState } from "#shared/records/key-record.ts";
import { printOf, type PersonRecord } from "#shared/records/person-record.ts";
import type { TeamRecord } from "#shared/records/team-record.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import type { MachineRecords } from "../fleet/machine-records.ts";
import type { Roster } from "../fleet/roster.ts";
import { budgetPeriodAt, budgetsOf } from "../limits/budgets.ts";
import { readSpent } from "../limits/open-limits.ts";
import type { Keeper } from "../placing/keeper.ts";
import * as judge from "./judge-site.ts";
import type { Condition, Conditions } from "./plan-calls.ts";

export interface WatchedSite {
  readonly config: { readonly stateDir: string; readonly currency: string };
  readonly store: Pick<OpenedKeyStore, "keys" | "state">;
  readonly broker: Pick<Broker, "connected" | "connectedSinceMs">;
  readonly records: Pick<MachineRecords, "all">;
  readonly roster: Pick<Roster, "all" | "aliveSinceMs">;
  readonly keeper: Pick<Keeper, "plan">;
  readonly standings: {
    readonly teams: { all(): readonly TeamRecord[] };
    readonly people: { all(): readonly PersonRecord[] };
  };
  readonly history: Pick<HistoryReader, "visit">;
  readonly certificates: () => Parameters<typeof judge.endingCertificates>[0];
  readonly timing: Pick<Timing, "scale" | "alertIntervalMs" | "alertLeaseMs">;
  readonly clock: Clock;
}

interface Round {
  /** The kinds that a target wants. */
  readonly kinds: ReadonlySet<string>;
  /** True in the rounds that read all, and not only what costs little. */
  readonly isWhole: boolean;
  /** Since when this gateway has been at work without interruption, by its own clock. */
  readonly sinceMs: number;
}

/**
 * Reads what is wrong with the site, and which gateways share the store. Rejects while the store is away: nothing is judged then. A
 * gateway whose broker is away hears no machine and judges none.
 */
export async function readConditions(parts: WatchedSite, state: AlarmState, { kinds, isWhole, sinceMs }: Round) {
  const { store, broker, records, roster, keeper, config, certificates, timing, clock } = parts;
  const [nowMs, hereToWallMs] = [clock.wall(), clock.wall() - clock.now()];
  const heardSince = Math.max(sinceMs, broker.connectedSinceMs);
  const heardSinceMs = heardSince + hereToWallMs;
  // The silence of machines counts anew after a pause of this process too. Until a far one is offline again, no alarm is over.
  const hears = broker.connected && clock.now() - Math.max(heardSince, roster.aliveSinceMs) >= timing.alertIntervalMs;
  const open = (of: AlarmKind) => state.alarms.filter(({ kind, overAt }) => kind === of && overAt === undefined);
  const isOpen = (of: AlarmKind): boolean => open(of).length > 0;
  const isShared = store.state.kind === "redis";
  const there = isShared ? await store.keys.gateways() : undefined;
  const judged = async (
    kind: AlarmKind,
    isKnown: boolean,
    read: () => FoundConditions | Promise<FoundConditions>,
  ): Promise<Conditions> => (kinds.has(kind) && isKnown ? { [kind]: await read() } : {});
  const conditions: Conditions = {
    ...(await judged("machine-away", hears, () =>
      judge.awayMachines(records.all(), roster.all(clock.now()), open("machine-away"), {
        nowMs,
        heardSinceMs,
        hereToWallMs,
      }),
    )),
    ...(await judged("keep-unmet", hears, async () => judge.unmetKeeps((await keeper.plan()).steps))),
    ...(await judged("budget", isWhole, () => readBudgets(parts))),
    ...(await judged("errors", isWhole, async () =>
      judge.failedRequests(await readRequests(parts.history, nowMs), isOpen("errors")),
    )),
    ...(await judged("certificate", isWhole, () => judge.endingCertificates(certificates(), nowMs))),
    ...(await judged("disk", isWhole && !isShared, () => readDisk(config.stateDir, isOpen("disk")))),
    ...(await judged("gateway-away", isShared, () =>
      judge.awayGateways(judge.followGateways(state, there ?? [], nowMs), heardSinceMs),
    )),
  };
  return { conditions, there, nowMs };
}

type FoundConditions = readonly Condition[] | undefined;

async function readBudgets({ store, standings, config, clock }: WatchedSite): Promise<FoundConditions> {
  const nowMs = clock.wall();
  const usesOf = (book: string, of: string, limits: KeyLimits = {}) =>
    budgetsOf(limits).map((each) => ({ ...each, book, of, period: budgetPeriodAt(each.per, nowMs).name }));
  const keys = (await store.keys.list()).filter((key) => keyState(key, nowMs) === "valid");
  const all = [
    ...keys.flatMap(({ id, name, limits }) => usesOf(id, `key ${name} (${id})`, limits)),
    ...standings.teams.all().flatMap(({ name, limits }) => usesOf(`team:${name}`, `team ${name}`, limits)),
    ...standings.people
      .all()
      .flatMap(({ name, email, called, limits }) =>
        usesOf(`person:${name}`, `person ${email ?? called} (${printOf(name)})`, limits),
      ),
  ];
  const spent = await readSpent(store.state, all, clock);
  return all.flatMap((each, at) => judge.spentShares({ ...each, used: spent[at] ?? 0 }, config.currency));
}

/** Returns the sums of the last five minutes and of the one that has begun. */
async function readRequests(history: WatchedSite["history"], nowMs: number): Promise<Row> {
  const row = new Row();
  const length = slotLengths.minute;
  const fromMs = Math.floor(nowMs / length.ms - 5) * length.ms;
  await history.visit({ length, fromMs, untilMs: nowMs }, (_, sums) => row.merge(sums.rowOf(totalSeries)));
  return row;
}

/** Judges the disk of a folder; undefined where the system does not tell of it. */
async function readDisk(folder: string, isOpen: boolean): Promise<FoundConditions> {
  const { bavail, blocks } = await statfs(folder).catch(() => ({ bavail: 0, blocks: 0 }));
  return blocks > 0 ? judge.fullDisk(bavail / blocks, isOpen) : undefined;
}
