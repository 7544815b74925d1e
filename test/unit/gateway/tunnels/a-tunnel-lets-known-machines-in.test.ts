import { expect, test } from "vitest";
import {
  unprovenMax,
  unprovenPerNetworkMax,
  UnprovenSockets,
} from "../../../../services/gateway/tunnels/accept-tunnels.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { connectsPerMinuteMax, newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { machineFinder } from "../../../../services/gateway/compose-tunnels.ts";
import {
  BadKeys,
  badKeysPerMinuteMax,
  laneAskingMax,
  laneWaitingMax,
} from "../../../../services/gateway/keys/bad-keys.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { perMinute, RateBuckets } from "#shared/process/rate-buckets.ts";
import { judgeTakeovers, type KeyUse } from "../../../../services/gateway/tunnels/open-tunnels.ts";
import * as fc from "fast-check";
import { FrameRate } from "../../../../services/gateway/tunnels/frame-rate.ts";

test("sockets that wait longest give way to new ones when many networks hold all places", () => {
  const unproven = new UnprovenSockets();
  const gaveWay: number[] = [];
  const admit = (socket: number, network: string): (() => void) => {
    const release = unproven.admit(network, () => {
      gaveWay.push(socket);
      release();
    });
    return release;
  };
  const releases = Array.from({ length: unprovenMax }, (_, socket) => {
    return admit(socket, `network ${Math.floor(socket / unprovenPerNetworkMax)}`);
  });
  expect(() => admit(-1, "network 1")).toThrow("unprovenPerNetworkMax");
  expect(gaveWay).toEqual([]);
  admit(unprovenMax, "an agent's");
  expect(gaveWay).toEqual([0]);
  releases[1]?.();
  admit(unprovenMax + 1, "another agent's");
  expect(gaveWay).toEqual([0]);
  // The first one left a place of its network, and its own release came a second time.
  releases[0]?.();
  // As long as its own sockets give way, the network has 62.
  const its = Array.from({ length: unprovenPerNetworkMax - 2 }, (_, place) => 2 + place);
  for (const place of its) admit(unprovenMax + place, "network 0");
  expect(gaveWay).toEqual([0, ...its]);
  for (const place of [0, 1]) admit(2 * unprovenMax + place, "network 0");
  expect(() => admit(-1, "network 0")).toThrow("unprovenPerNetworkMax");
  expect(gaveWay).toEqual([0, ...its, unprovenPerNetworkMax, unprovenPerNetworkMax + 1]);
});

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

const pauseMs = 60_000 / connectsPerMinuteMax;

test("a machine connects as often as it likes up to its limit, and then at the limit's pace", () => {
  const clock = new TurnableClock();
  const rate = new RateBuckets(clock, perMinute(connectsPerMinuteMax));
  for (let count = 0; count < connectsPerMinuteMax; count += 1) expect(rate.take("a machine")).toBe(0);
  expect(rate.take("a machine")).toBe(pauseMs);
  expect(rate.take("another machine")).toBe(0);
  clock.advance(pauseMs - 1);
  expect(rate.take("a machine")).toBe(1);
  clock.advance(1);
  expect(rate.take("a machine")).toBe(0);
  expect(rate.take("a machine")).toBe(pauseMs);
});

test("a machine that stays away for a minute has its whole limit again", () => {
  const clock = new TurnableClock();
  const rate = new RateBuckets(clock, perMinute(connectsPerMinuteMax));
  while (rate.take("a machine") === 0);
  clock.advance(60_000);
  for (let count = 0; count < connectsPerMinuteMax; count += 1) expect(rate.take("a machine")).toBe(0);
});

/** Uses of a key, a word each: `x` is a connection of process x, `X` one that replaced another process's open one. */
function uses(text: string, everyMs = 1_000): KeyUse[] {
  return text.split(" ").map((word, place) => {
    const boot = word.toLowerCase();
    return { atMs: place * everyMs, boot, address: `address of ${boot}`, isTakeover: word !== boot };
  });
}

test.each([
  ["never", ""],
  ["once", "x"],
  ["by one process that connects again and again", "x x x x x"],
  ["by one process after the other", "x y z"],
  ["by processes that each replaced a connection of the former, twice within a minute", "x Y Z"],
])("a machine's key used %s raises no suspicion", (_, text) => {
  expect(judgeTakeovers(text === "" ? [] : uses(text))).toBeUndefined();
});

test.each([
  ["a process comes back after another one", "x y x", "y", "x"],
  ["a process comes back after a while", "x x y y y x", "y", "x"],
  ["a process comes back after two others", "x y z x", "z", "x"],
  ["three connections were taken over within a minute", "x Y Z W", "z", "w"],
])("a machine's key is used twice when %s", (_, text, ...boots) => {
  expect(judgeTakeovers(uses(text))).toEqual(boots.map((boot) => `address of ${boot}`));
});

test("a machine's key may change hands three times when that takes longer than a minute", () => {
  expect(judgeTakeovers(uses("x Y Z W", 30_000))).toBeUndefined();
});

/** A masked frame as a client sends it. The kind of a frame does not matter. */
function frameOf(payloadBytes: number): Buffer {
  const head =
    payloadBytes < 126
      ? [0x82, 0x80 | payloadBytes]
      : payloadBytes < 65_536
        ? [0x82, 0xfe, payloadBytes >> 8, payloadBytes & 0xff]
        : [0x82, 0xff, 0, 0, 0, 0, 0, payloadBytes >> 16, (payloadBytes >> 8) & 0xff, payloadBytes & 0xff];
  return Buffer.concat([Buffer.from(head), Buffer.alloc(4 + payloadBytes, 0x82)]);
}

test("the frames of a WebSocket are counted exactly, wherever their bytes are split", () => {
  const payload = fc.oneof(fc.nat({ max: 300 }), fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536));
  fc.assert(
    fc.property(fc.array(payload, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 30 }), (payloads, cuts) => {
      const bytes = Buffer.concat(payloads.map(frameOf));
      const places = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
      const frames = new FrameRate();
      const counts = places.slice(1).map((place, at) => frames.count(bytes.subarray(places[at], place)));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(payloads.length);
    }),
  );
});
