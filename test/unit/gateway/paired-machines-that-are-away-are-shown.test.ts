import { expect, test } from "vitest";
import type { MachineRecord, SeenMachine } from "#shared/records/machine-record.ts";
import { newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { SeenMachines } from "../../../services/gateway/fleet/note-seen.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { joinReuse, showAway, showAwayRank } from "../../../services/gateway/operations/away-machines.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

const wallMs = Date.UTC(2026, 0, 1);
const { publicKey } = newMachineKeyPair();
const used = { id: "abcDEF012345", key: "k".repeat(43), by: "o", expiresAt: 1, usedAt: 1, usedFrom: "203.0.113.1" };
const attic: MachineRecord = { name: "attic", version: 2, createdAt: 1, changedAt: 1, publicKey, join: used };
const waiting = { ...attic, publicKey: undefined, join: { ...used, expiresAt: wallMs + 60_000, usedAt: undefined } };
const lastSeen = new Map([[publicKey, { atMs: wallMs - 7_200_000, runtime: "ollama 0.9.1", models: 3 }]]);
const show = (record: MachineRecord) => showAway(record, { wallMs, lastSeen });

test.each([
  ["that is paired", attic, "paired", "paired, but not connected"],
  [
    "that is cordoned",
    { ...attic, cordon: { reason: "new fans", at: 1, by: "o" } },
    "cordoned",
    "paired, but not connected; cordoned: new fans (trunkline machines uncordon)",
  ],
  [
    "that was revoked",
    { ...attic, revokedAt: wallMs - 1_000 },
    "revoked",
    "was revoked at 2025-12-31 23:59 UTC (trunkline machines pair attic makes a new line)",
  ],
  [
    "that has not joined yet",
    waiting,
    "joining",
    "has not used its join line yet, which is good until 2026-01-01 00:01 UTC",
  ],
] as const)("a machine with a record that is not connected, %s, is shown as that", (_, record, pairing, why) => {
  expect(show(record)).toMatchObject({ machine: "attic", pairing, why, status: "offline", takes_work: false });
});

test("a machine with a record that is not connected is shown with the time when any gateway heard it last, and what it offered then", () => {
  expect(show(attic)).toMatchObject({ heard_ms_ago: 7_200_000, runtime: "ollama 0.9.1", models: 3 });
  expect(show(waiting)?.heard_ms_ago).toBeNull();
});

test("a machine with a record that is not connected is not expected when its record only permits models", () => {
  const { publicKey: _, join: __, ...permitted } = attic;
  expect([show(permitted), showAwayRank(permitted, wallMs)]).toEqual([undefined, undefined]);
});

test("a machine with a record that is not connected is in no route's way, with the reason", () => {
  expect(showAwayRank(attic, wallMs)).toMatchObject({ rank: null, reason: "offline" });
  expect(showAwayRank({ ...attic, revokedAt: 1 }, wallMs)).toMatchObject({ rank: null, reason: "revoked" });
});

test("a join line that was used again is told with both addresses for a day", () => {
  const join = { ...used, usedAgainAt: wallMs, usedAgainFrom: "198.51.100.9" };
  const told =
    "its join line was used from 203.0.113.1 and again from 198.51.100.9: revoke it if the first was not you";
  expect(joinReuse({ join }, wallMs + 86_400_000)).toBe(told);
  expect(joinReuse({ join }, wallMs + 86_400_001)).toBeUndefined();
  expect(joinReuse({ join: used }, wallMs)).toBeUndefined();
});

test("a gateway notes every 10 s when it heard its machines, all in one write, and none twice", async () => {
  const clock = new TurnableClock({ wallMs });
  const roster = new Roster(timingAt(1));
  const records = { get: (name: string) => (name === "unpaired" ? undefined : { ...attic, name, publicKey: name }) };
  const written: (readonly [string, number])[][] = [];
  let isAway = false;
  const noteSeen = async (seen: ReadonlyMap<string, SeenMachine>): Promise<void> => {
    if (isAway) throw new Error("away");
    written.push(Array.from(seen, ([machine, { atMs }]) => [machine, atMs]));
  };
  const log = { warn: () => undefined };
  const seen = new SeenMachines({ roster, records, catalogues: { of: () => [] }, machines: { noteSeen }, clock, log });
  const hear = (...names: string[]) => names.map((name) => roster.announced(presenceOf(name), clock.now()));
  hear("attic", "cellar", "unpaired");
  isAway = true;
  await clock.advanceAwaiting(10_000);
  isAway = false;
  await clock.advanceAwaiting(10_000);
  const both = (atMs: number) => [["attic", "cellar"].map((name) => [name, atMs])];
  expect(written.splice(0)).toEqual(both(wallMs));
  await clock.advanceAwaiting(5_000);
  hear("attic");
  await clock.advanceAwaiting(10_000);
  expect(written.splice(0)).toEqual([[["attic", wallMs + 25_000]]]);
  await clock.advanceAwaiting(60_000);
  expect(written).toEqual([]);
  hear("attic", "cellar");
  await seen.leaving("cellar");
  expect(written.splice(0)).toEqual([[["cellar", wallMs + 95_000]]]);
  await seen.stop();
  expect(written).toEqual(both(wallMs + 95_000));
});
