import { setImmediate } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { authenticate } from "../../../../services/gateway/keys/authenticate.ts";
import {
  addressesMax,
  BadKeys,
  badKeysPerMinuteMax,
  laneAskingMax,
  laneWaitingMax,
  laneWaitMsMax,
} from "../../../../services/gateway/keys/bad-keys.ts";
import { KnownKeys } from "../../../../services/gateway/keys/known-keys.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { peppers, StoreOfATest } from "./keys-of-a-test.ts";

let clock: TurnableClock;
let store: StoreOfATest;
let badKeys: BadKeys;
let knownKeys: KnownKeys;
beforeEach(() => {
  clock = new TurnableClock();
  store = new StoreOfATest();
  badKeys = new BadKeys(clock);
  knownKeys = new KnownKeys({ keys: store, peppers, clock, awayMs: 60_000, onOldPepper: () => undefined });
  knownKeys.heard();
});

const send = async (text: string, address = "192.0.2.1"): Promise<unknown> => {
  try {
    await authenticate({ text: text || undefined, address }, { knownKeys, badKeys });
    return "valid";
  } catch (fault) {
    return fault;
  }
};
async function guess(times: number, address?: string): Promise<void> {
  for (let attempt = 0; attempt < times; attempt += 1) {
    expect(await send(mintKeyToken().reveal(), address)).toMatchObject({ code: "key_invalid" });
  }
}
const mustWait = (address: string): boolean => badKeys.hasTooMany(address);
/** Has the store answer nobody until the returned function is called. */
function holdStore(): () => void {
  const held = Promise.withResolvers<void>();
  store.answers = held.promise;
  return held.resolve;
}
const wrong = (): string => mintKeyToken().reveal();
const issue = () => store.add({ expiresAt: clock.wall() + 3_600_000 }).token.reveal();

test("an address with many wrong keys has few of its unknown keys asked for at once", async () => {
  await guess(badKeysPerMinuteMax);
  const { asked } = store;
  const answer = holdStore();
  const sent = Array.from({ length: laneAskingMax + laneWaitingMax }, () => send(wrong()));
  await setImmediate();
  expect(store.asked - asked).toBe(laneAskingMax);
  const refused = await send(issue());
  expect(refused).toMatchObject({ code: "auth_unavailable", message: expect.stringContaining("badKeysPerMinuteMax") });
  expect(await send("nonsense")).toMatchObject({ code: "key_invalid" });
  answer();
  expect(await Promise.all(sent)).toEqual(sent.map(() => expect.objectContaining({ code: "key_invalid" })));
  expect(await send(issue())).toBe("valid");
});

test("an unknown key waits in the lane for one second at most, and is told 503", async () => {
  await guess(badKeysPerMinuteMax);
  const answer = holdStore();
  const asked = Array.from({ length: laneAskingMax }, () => send(wrong()));
  const waiting = send(issue());
  await clock.advanceAwaiting(laneWaitMsMax);
  expect(await waiting).toMatchObject({ code: "auth_unavailable", message: expect.stringContaining("laneWaitMsMax") });
  answer();
  await Promise.all(asked);
  expect(await send(issue())).toBe("valid");
  expect(clock.timersWaiting).toBe(0);
});

test("unknown keys of an address without many wrong ones pass by the lane", async () => {
  await guess(badKeysPerMinuteMax);
  const answer = holdStore();
  const lane = Array.from({ length: laneAskingMax + laneWaitingMax }, () => send(wrong()));
  await setImmediate();
  const other = send(issue(), "192.0.2.2");
  answer();
  expect(await other).toBe("valid");
  await Promise.all(lane);
});

test("an address leaves the lane bit by bit", async () => {
  await guess(badKeysPerMinuteMax);
  expect(mustWait("192.0.2.1")).toBe(true);
  clock.advance(60_000 / badKeysPerMinuteMax);
  expect(mustWait("192.0.2.1")).toBe(false);
  await guess(1);
  expect(mustWait("192.0.2.1")).toBe(true);
});

test("a key that is known passes also while the store is away and cannot be heard", async () => {
  const key = issue();
  expect(await send(key)).toBe("valid");
  await guess(badKeysPerMinuteMax);
  store.away = true;
  knownKeys.away();
  clock.advance(1_500);
  await send(mintKeyToken().reveal());
  expect(await send(key)).toBe("valid");
});

test("only keys that are none count: not right ones, not expired ones, and no key at all", async () => {
  const expired = store.add({ expiresAt: clock.wall() }).token.reveal();
  for (let attempt = 0; attempt <= badKeysPerMinuteMax; attempt += 1) {
    expect(await send(expired)).toMatchObject({ code: "key_expired" });
    expect(await send("")).toMatchObject({ code: "key_invalid", message: expect.stringContaining("No API key") });
    expect(await send(issue())).toBe("valid");
  }
});

test("an address counts with whatever port a proxy writes behind it, and what is no address as one", async () => {
  for (let port = 1; port <= badKeysPerMinuteMax; port += 1) badKeys.note(`192.0.2.7:${port}`);
  expect(mustWait("192.0.2.7")).toBe(true);
  for (let each = 1; each <= badKeysPerMinuteMax; each += 1) badKeys.note(`unknown-${each}`);
  expect(mustWait("something else")).toBe(true);
});

test("addresses of one IPv6 network count together, and IPv4 in IPv6 as what it is", async () => {
  await guess(badKeysPerMinuteMax - 1, "2001:db8:1:2::1");
  await guess(1, "2001:db8:1:2:ffff::");
  expect(mustWait("2001:db8:1:2:3:4:5:6")).toBe(true);
  expect(mustWait("2001:db8:1:3::1")).toBe(false);
  expect(mustWait("2001:db8::1")).toBe(false);
  await guess(badKeysPerMinuteMax, "::ffff:192.0.2.9");
  expect(mustWait("192.0.2.9")).toBe(true);
});

test("an attack from many addresses is kept in bounded memory", () => {
  for (let attempt = 0; attempt < badKeysPerMinuteMax; attempt += 1) badKeys.note("198.51.100.1");
  for (let other = 0; other < addressesMax; other += 1) badKeys.note(`10.${other >> 8}.${other & 255}.1`);
  expect(mustWait("198.51.100.1")).toBe(false);
});

test("an admin key calls no models, and is told so without being looked up", async () => {
  expect(await send(mintKeyToken("admin").reveal())).toMatchObject({
    code: "key_invalid",
    message: expect.stringContaining("admin key"),
  });
  expect(store.asked).toBe(0);
});
