import { onTestFinished, expect, test } from "vitest";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { agentProof, newMachineKeyPair, pairPath } from "#shared/protocol/pairing.ts";
import {
  BadKeys,
  badKeysPerMinuteMax,
  laneAskingMax,
  laneWaitingMax,
} from "../../../services/gateway/keys/bad-keys.ts";
import { createServer } from "../../../services/gateway/server.ts";
import { Challenges, pairMachines } from "../../../services/gateway/tunnels/pair-machines.ts";
import { until } from "../../harness/until.ts";
import { noMachines } from "./operations/admin-on-a-store.ts";

const site = { id: "s".repeat(22) };

test("an address that guessed too many proofs asks the store in one lane, in which a good line is still found", async () => {
  const log = createLog({ level: "silent", name: "gateway" });
  const server = createServer({ log, bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" });
  onTestFinished(() => server.close());
  const challenges = new Challenges({
    peppers: new Peppers(pepperText.parse("a pepper that is long enough to be one")),
    clock,
  });
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
  const badKeys = new BadKeys(clock);
  const keys = { find: async () => ({ kind: "absent" }) as const };
  pairMachines(server, { machines, keys, records: { site }, isNameUsed, challenges, badKeys, clock, log });

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
