import { expect, onTestFinished, test } from "vitest";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { systemClock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { agentProof, newMachineKeyPair, pairPath } from "#shared/protocol/pairing.ts";
import {
  BadKeys,
  badKeysPerMinuteMax,
  laneAskingMax,
  laneWaitingMax,
} from "../../../services/gateway/keys/bad-keys.ts";
import { createServer } from "../../../services/gateway/server.ts";
import { challengeMsMax, Challenges, pairMachines } from "../../../services/gateway/tunnels/pair-machines.ts";
import { until } from "../../harness/until.ts";
import { noMachines } from "./operations/admin-on-a-store.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const site = { id: "s".repeat(22) };
const pepper = pepperText.parse("a pepper that is long enough to be one");
const other = pepperText.parse("another pepper, long enough to be one");

test("an address that guessed too many proofs asks the store in one lane, in which a good line is still found", async () => {
  const log = createLog({ level: "silent", name: "gateway" });
  const server = createServer({ log, bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" });
  onTestFinished(() => server.close());
  const challenges = new Challenges({ peppers: new Peppers(pepper), clock: systemClock });
  let asked = 0;
  let answerAll: (record: MachineRecord | undefined) => void = () => undefined;
  const answered = new Promise<MachineRecord | undefined>((resolve) => (answerAll = resolve));
  let isHeld = false;
  const findByJoin = async (): Promise<MachineRecord | undefined> => {
    asked += 1;
    return isHeld ? answered : undefined;
  };
  const machines = { ...noMachines, findByJoin };
  const isNameUsed = (): boolean => false;
  const badKeys = new BadKeys(systemClock);
  const keys = { find: async () => ({ kind: "absent" }) as const };
  pairMachines(server, { machines, keys, records: { site }, isNameUsed, challenges, badKeys, clock: systemClock, log });

  const key = Buffer.alloc(32, 7);
  const { publicKey } = newMachineKeyPair();
  const join = "abcDEF012345";
  const send = async (proofKey: Uint8Array) => {
    const challenge = challenges.make();
    const proof = agentProof(proofKey, { join, publicKey, site: site.id, challenge });
    const response = await server.inject({
      method: "POST",
      url: pairPath,
      payload: { join, public_key: publicKey, challenge, proof },
    });
    return response.statusCode;
  };
  for (let sent = 0; sent < badKeysPerMinuteMax * 1.1; sent += 1) expect(await send(Buffer.alloc(32, 8))).toBe(403);

  isHeld = true;
  asked = 0;
  const good = Array.from({ length: laneAskingMax + laneWaitingMax }, () => send(key));
  await until(() => asked === laneAskingMax, { what: "the lane to be full" });
  expect(await send(key)).toBe(503);
  expect(asked).toBe(laneAskingMax);
  const used = { id: join, key: key.toString("base64url"), by: "o", expiresAt: 1, usedAt: 1, usedFrom: "::1" };
  answerAll({ name: "attic", version: 2, createdAt: 1, changedAt: 1, publicKey, join: used });
  expect(new Set(await Promise.all(good))).toEqual(new Set([200]));
});

test("a challenge is good for a minute, at every gateway that has its pepper", () => {
  const clock = new TurnableClock({ wallMs: 1_800_000_000_000 });
  const challenge = new Challenges({ peppers: new Peppers(pepper), clock }).make();
  const elsewhere = new Challenges({ peppers: new Peppers(other, pepper), clock });
  expect(elsewhere.isGood(challenge)).toBe(true);
  expect(new Challenges({ peppers: new Peppers(other), clock }).isGood(challenge)).toBe(false);
  clock.advance(challengeMsMax);
  expect(elsewhere.isGood(challenge)).toBe(true);
  clock.advance(1);
  expect(elsewhere.isGood(challenge)).toBe(false);
});

test("a challenge that was altered, or that nobody made, is not good", () => {
  const clock = new TurnableClock({ wallMs: 1_800_000_000_000 });
  const challenges = new Challenges({ peppers: new Peppers(pepper), clock });
  const challenge = challenges.make();
  const [time = "", nonce = "", signature = ""] = challenge.split(".");
  const later = (1_800_000_001_000).toString(36);
  for (const altered of [
    `${later}.${nonce}.${signature}`,
    `${time}.${nonce.toLowerCase()}0.${signature}`,
    `${time}.${nonce}`,
    signature,
    "",
    "....",
  ]) {
    expect(challenges.isGood(altered)).toBe(false);
  }
  expect(challenges.make()).not.toBe(challenge);
});
