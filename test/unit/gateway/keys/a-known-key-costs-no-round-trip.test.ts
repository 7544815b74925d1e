import { beforeEach, expect, test } from "vitest";
import { mintKeyToken, type KeyToken } from "#shared/keys/key-token.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { validKey } from "../../../../services/gateway/keys/authenticate.ts";
import { KnownKeys, knownKeysMax } from "../../../../services/gateway/keys/known-keys.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { peppers, StoreOfATest } from "./keys-of-a-test.ts";

const awayMs = 60_000;

let clock: TurnableClock;
let store: StoreOfATest;
let known: KnownKeys;
beforeEach(() => {
  clock = new TurnableClock();
  store = new StoreOfATest();
  known = knownKeys(awayMs);
});

function knownKeys(
  forMs: number,
  with_ = peppers,
  onOldPepper: (token: KeyToken) => void = () => undefined,
): KnownKeys {
  const keys = new KnownKeys({ keys: store, peppers: with_, clock, awayMs: forMs, onOldPepper });
  keys.heard();
  return keys;
}
const issue = (ttlMs = 3_600_000) => store.add({ expiresAt: clock.wall() + ttlMs });

/** As a request does: what is known, and else what the store says. */
async function outcome(token: KeyToken, keys = known): Promise<string> {
  return (keys.recall(token) ?? (await keys.ask(token))).outcome;
}
/** Lets time pass while the store goes on being heard. */
function hearFor(ms: number): void {
  for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
    clock.advance(1_000);
    known.heard();
  }
}

test("a key that is known expires at its time without asking, and its old secret at the end of its grace", async () => {
  const { token } = issue(5_000);
  await outcome(token);
  hearFor(4_000);
  expect(known.recall(token)?.outcome).toBe("valid");
  clock.advance(1_000);
  expect(known.recall(token)?.outcome).toBe("expired");

  const rotated = issue();
  const replaced = [{ digest: rotated.record.digest, pepper: rotated.record.pepper, validUntil: clock.wall() + 2_000 }];
  store.change(rotated.token.id, { replaced, digest: mintKeyToken().digest(peppers.current) });
  expect(await outcome(rotated.token)).toBe("valid");
  hearFor(2_000);
  expect(known.recall(rotated.token)?.outcome).toBe("replaced");
});

test.each<[string, () => void]>([
  ["after changes may have been missed", () => known.forgetAll()],
  ["when the store was not heard for 3 s, though nobody said that it is away", () => clock.advance(3_001)],
  ["a second after changes are not heard any more", () => (known.away(), clock.advance(1_001))],
])("a key that is known is asked for again %s", async (_, happens) => {
  const { token } = issue();
  await outcome(token);
  store.change(token.id, { revokedAt: clock.wall() });
  expect(await outcome(token)).toBe("valid");
  happens();
  expect(await outcome(token)).toBe("invalid");
});

test("a key that is known is not another that begins like it", async () => {
  const { token } = issue();
  await outcome(token);
  const other = mintKeyToken("model", token.id);
  expect(other.reveal().slice(0, 23)).toBe(token.reveal().slice(0, 23));
  expect(known.recall(other)).toBeUndefined();
  expect(await outcome(other)).toBe("invalid");
});

test("a key that the store is asked for is asked for once by all who want to know at the same time", async () => {
  const { token } = issue();
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => outcome(token)));
  expect(new Set(outcomes)).toEqual(new Set(["valid"]));
  expect(store.asked).toBe(1);
});

test("a key that the store is asked for is not let through by an answer that its revocation has overtaken", async () => {
  const { token } = issue();
  store.meanwhile = () => {
    store.meanwhile = () => undefined;
    store.change(token.id, { revokedAt: clock.wall() });
    known.forget(token.id);
  };
  expect(await outcome(token)).toBe("invalid");
});

test("a key that the store is asked for is not kept unless it is valid", async () => {
  const token = mintKeyToken();
  expect(await outcome(token)).toBe("invalid");
  expect(known.recall(token)).toBeUndefined();
});

test("a key that the store is asked for under a pepper that this gateway does not have is not judged, and never called invalid", async () => {
  const { token } = issue();
  const elsewhere = knownKeys(awayMs, new Peppers(pepperText.parse("another pepper, long enough to be one")));
  expect(await outcome(token, elsewhere)).toBe("unjudged");
  expect(() => validKey({ outcome: "unjudged" })).toThrow(expect.objectContaining({ code: "auth_unavailable" }));
});

test("while the store is away known keys go on for their bounded time, unknown ones are not judged, and its return heals all", async () => {
  const { token } = issue();
  const unknown = issue();
  await outcome(token);
  store.away = true;
  known.away();
  for (let passedMs = 0; passedMs < awayMs; passedMs += 1_000) {
    expect(await outcome(token)).toBe("valid");
    await expect(outcome(unknown.token)).rejects.toMatchObject({ code: "auth_unavailable" });
    clock.advance(1_000);
  }
  await expect(outcome(token)).rejects.toMatchObject({ code: "auth_unavailable" });
  store.away = false;
  known.heard();
  expect(await outcome(token)).toBe("valid");
  expect(await outcome(unknown.token)).toBe("valid");
});

test("while the store is away known keys do not each wait for it: it is asked about them once a second", async () => {
  const { token } = issue();
  await outcome(token);
  store.away = true;
  known.away();
  clock.advance(2_000);
  for (let request = 0; request < 100; request += 1) await outcome(token);
  expect(store.asked).toBe(2);
});

test("no more keys are kept than a gateway has room for, and those that were used last stay", async () => {
  const kept = issue();
  await outcome(kept.token);
  for (let more = 1; more < knownKeysMax; more += 1) await outcome(issue().token);
  expect(known.recall(kept.token)?.outcome).toBe("valid");
  const next = issue();
  await outcome(next.token);
  expect(known.recall(kept.token)?.outcome).toBe("valid");
  expect(known.recall(next.token)?.outcome).toBe("valid");
});
