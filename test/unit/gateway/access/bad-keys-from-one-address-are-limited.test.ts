import { beforeEach, expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { authenticate } from "../../../../services/gateway/access/authenticate.ts";
import { addressesMax, BadKeys, badKeysPerMinuteMax } from "../../../../services/gateway/access/bad-keys.ts";
import { KnownKeys } from "../../../../services/gateway/access/known-keys.ts";
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

const send = (text: string, address = "192.0.2.1"): Promise<unknown> =>
  authenticate({ authorization: `Bearer ${text}`, address }, { knownKeys, badKeys }).then(
    () => "valid",
    (fault: unknown) => fault,
  );
async function guess(times: number, address?: string): Promise<void> {
  for (let attempt = 0; attempt < times; attempt += 1) {
    expect(await send(mintKeyToken().reveal(), address)).toMatchObject({ code: "key_invalid" });
  }
}
function mustWait(address: string): boolean {
  try {
    badKeys.insistOnFew(address);
    return false;
  } catch {
    return true;
  }
}
const issue = () => store.add({ expiresAt: clock.wall() + 3_600_000 }).token.reveal();

test("after so many wrong keys an address has to wait, is told for how long, and costs the store nothing", async () => {
  await guess(badKeysPerMinuteMax);
  const { asked } = store;
  const refused = await send(mintKeyToken().reveal());
  expect(refused).toMatchObject({ code: "rate_limit_bad_keys", retryAfterSeconds: 1 });
  expect(String(refused)).toContain("badKeysPerMinuteMax");
  expect(await send("nonsense")).toMatchObject({ code: "rate_limit_bad_keys" });
  expect(store.asked).toBe(asked);
  expect(await send(mintKeyToken().reveal(), "192.0.2.2")).toMatchObject({ code: "key_invalid" });
});

test("an address that waits is free again bit by bit", async () => {
  await guess(badKeysPerMinuteMax);
  clock.advance(60_000 / badKeysPerMinuteMax);
  await guess(1);
  expect(await send(mintKeyToken().reveal())).toMatchObject({ code: "rate_limit_bad_keys" });
  clock.advance(60_000);
  await guess(badKeysPerMinuteMax);
});

test("a key that is known passes at any time, whoever shares its address", async () => {
  const key = issue();
  expect(await send(key)).toBe("valid");
  await guess(badKeysPerMinuteMax);
  expect(await send(key)).toBe("valid");
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
