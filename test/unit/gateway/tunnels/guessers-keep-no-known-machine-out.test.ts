import { expect, test } from "vitest";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { machineFinder } from "../../../../services/gateway/compose-tunnels.ts";
import {
  BadKeys,
  badKeysPerMinuteMax,
  laneAskingMax,
  laneWaitingMax,
} from "../../../../services/gateway/keys/bad-keys.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

test("a known machine is found at once while guessers of its network wait for a store that does not answer", async () => {
  const badKeys = new BadKeys(new TurnableClock());
  const address = "192.0.2.1";
  for (let count = 0; count < badKeysPerMinuteMax * 2; count += 1) badKeys.note(address);
  const { publicKey } = newMachineKeyPair();
  const attic: MachineRecord = { name: "attic", publicKey, version: 1, createdAt: 1, changedAt: 1 };
  const records = {
    getByKey: (key: string) => (key === publicKey ? attic : undefined),
    findByKey: () => new Promise<undefined>(() => undefined),
  };
  const find = machineFinder(records, badKeys);
  const guesses = Array.from({ length: laneAskingMax + laneWaitingMax + 1 }, () =>
    find(newMachineKeyPair().publicKey, address),
  );
  await expect(guesses.at(-1)).rejects.toThrow("badKeysPerMinuteMax");
  expect(await find(publicKey, address)).toBe(attic);
});
