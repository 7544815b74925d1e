import { expect, test } from "vitest";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { challengeMsMax, Challenges } from "../../../services/gateway/tunnels/pair-machines.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const [pepper, other] = ["one", "another"].map((text) =>
  pepperText.parse(`${text} pepper that is long enough to be one`),
);
if (pepper === undefined || other === undefined) throw new Error("there are two peppers");

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
