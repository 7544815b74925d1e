import { expect, test } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { createLog } from "#shared/process/log.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { SecondConnections } from "../../../services/gateway/fleet/second-connections.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

const timing = timingAt(1);
const attic: MachineRecord = { name: "attic", publicKey: "UATTIC", version: 1, createdAt: 0, changedAt: 0 };

function watched() {
  const clock = new TurnableClock();
  const logged: string[] = [];
  const log = createLog({ level: "error", name: "test", write: (line) => void logged.push(line) });
  const roster = new Roster(timing);
  const records = { getByKey: (key: string) => (key === attic.publicKey ? attic : undefined) };
  const broker = new MemoryBroker({ clock, log }).connect();
  const seconds = new SecondConnections({ broker, roster, records, timing, clock, log });
  const hear = (connection: string): void => {
    const presence = presenceOf("attic", { connection });
    roster.announced(presence, clock.now());
    seconds.heard(presence);
  };
  hear("S.1");
  const open = (connection: string, user = "UATTIC"): void =>
    seconds.opened({ user, connection, address: "203.0.113.7", client: "nats" });
  return { clock, hear, open, logged };
}

test("a reconnect is not reported when a presence of the connection before comes after it", () => {
  const { clock, hear, open, logged } = watched();
  open("S.2");
  hear("S.1");
  clock.advance(timing.rollcallSettleMs);
  hear("S.2");
  expect(logged).toEqual([]);
});

test("a connection that a later presence does not name is reported once, under the name of its key or its user", () => {
  const { clock, hear, open, logged } = watched();
  open("S.2");
  open("S.3", "attic");
  open("S.4", "a key that a gateway made for a tunnel");
  hear("S.1");
  expect(logged).toEqual([]);
  clock.advance(timing.rollcallSettleMs);
  hear("S.1");
  hear("S.1");
  expect(logged).toHaveLength(1);
  expect(JSON.parse(logged[0] ?? "")).toMatchObject({ machine: "attic", connection: "S.2", address: "203.0.113.7" });
});
