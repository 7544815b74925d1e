import { createCipheriv, randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { newToken } from "#shared/protocol/identifiers.ts";
import { limits } from "#shared/protocol/limits.ts";
import { placedSubject } from "#shared/protocol/subjects.ts";
import { openPlacements, sealPlacements } from "../../../services/gateway/routing/seal-placements.ts";
import { loadOn, peppersOf, promptOn } from "../../harness/placement-book.ts";

const gateway = newToken();
const peppers = peppersOf("a");
const machine = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const uint32 = fc.nat({ max: 0xffff_ffff });
const load = fc.tuple(machine, uint32, uint32).map(([name, jobs, tokens]) => loadOn(name, jobs, tokens));
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const prompt = fc.tuple(machine, fc.array(int32), int32).map(([name, blocks, salt]) => promptOn(name, blocks, salt));

/** Seals bytes as a gateway of this site would, whatever they are. */
function sealed(bytes: Uint8Array): Buffer {
  const nonce = randomBytes(12);
  const sealing = createCipheriv("aes-256-gcm", peppers.placementsKeys(gateway)[0], nonce);
  sealing.setAAD(Buffer.from(`1 ${placedSubject(gateway)}`));
  const text = Buffer.concat([sealing.update(bytes), sealing.final()]);
  return Buffer.concat([Buffer.of(1), nonce, text, sealing.getAuthTag()]);
}

test("placements are opened as they were sealed", () => {
  fc.assert(
    fc.property(fc.array(load), fc.array(prompt), fc.boolean(), fc.nat({ max: 3 }), (loads, prompts, isLast, part) => {
      const whole = { sentAtMs: 1_760_000_000_123.5, part, isLast, loads, prompts };
      const opened = openPlacements(sealPlacements(whole, { gateway, peppers }), { gateway, peppers });
      expect(opened).toEqual({ outcome: "opened", part: whole, isCurrent: true });
    }),
  );
});

test("a load beyond what 32 bits hold is told as the most that they hold", () => {
  const whole = { sentAtMs: 1, part: 0, isLast: true, loads: [loadOn("attic", -1, 2 ** 40)], prompts: [] };
  const opened = openPlacements(sealPlacements(whole, { gateway, peppers }), { gateway, peppers });
  expect(opened).toMatchObject({ part: { loads: [loadOn("attic", 0, 2 ** 32 - 1)] } });
});

test("the content of a gateway with a bug is malformed, and no memory is taken for what it claims", () => {
  const head = (part = 0, flag = 1, sentAtMs = 1): Buffer => {
    const bytes = Buffer.alloc(10, part);
    bytes.writeDoubleLE(sentAtMs);
    bytes[9] = flag;
    return bytes;
  };
  const named = (kind: number, name: string, epoch: string): Buffer =>
    Buffer.concat([Buffer.of(kind, name.length), Buffer.from(name), Buffer.of(epoch.length), Buffer.from(epoch)]);
  const { epoch } = loadOn("attic");
  const counts = (count: number): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(count, 4);
    return bytes;
  };
  const wrong: Readonly<Record<string, Buffer[]>> = {
    "a part of too many": [head(limits.placementsMessagesMax)],
    "an unknown flag": [head(0, 2)],
    "no time": [head(0, 1, Number.NaN)],
    "an unknown kind": [head(), named(3, "attic", epoch), counts(0)],
    "a name that is none": [head(), named(1, "a.b", epoch), counts(0)],
    "an epoch that is none": [head(), named(1, "attic", "1"), counts(0)],
    "an end in a name": [head(), Buffer.of(1, 200), Buffer.from("attic")],
    "an end in a load": [head(), named(1, "attic", epoch), Buffer.alloc(7)],
    "more blocks than there are": [head(), named(2, "attic", epoch), counts(2), Buffer.alloc(7)],
    "four thousand million blocks": [head(), named(2, "attic", epoch), counts(0xffff_ffff), Buffer.alloc(8)],
    "something behind the end": [head(), named(1, "attic", epoch), counts(0), Buffer.of(1)],
  };
  for (const [what, bytes] of Object.entries(wrong)) {
    const opened = openPlacements(sealed(Buffer.concat(bytes)), { gateway, peppers });
    expect(opened, what).toEqual({ outcome: "malformed" });
  }
  const right = Buffer.concat([head(), named(2, "attic", epoch), counts(2), Buffer.alloc(8)]);
  expect(openPlacements(sealed(right), { gateway, peppers })).toMatchObject({ outcome: "opened" });
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 10, maxLength: 200 }), (bytes) => {
      expect(() => openPlacements(sealed(bytes), { gateway, peppers })).not.toThrow();
    }),
  );
});

test("each boot of a gateway has a key of its own, and the seed of prompts tells nothing of either", () => {
  const [one, other] = [peppers.placementsKeys(gateway)[0], peppers.placementsKeys(newToken())[0]];
  expect(one.equals(other)).toBe(false);
  const { promptSeed } = peppers.current;
  expect(promptSeed).toBe(promptSeed | 0);
  expect(peppersOf("a").current.promptSeed).toBe(promptSeed);
  expect(peppersOf("b").current.promptSeed).not.toBe(promptSeed);
  expect(one.readInt32LE(0)).not.toBe(promptSeed);
});
