import { expect, test } from "vitest";
import { ReconnectPace } from "#shared/broker/nats-connection.ts";

/** The delays of `count` attempts in a row. */
const waits = (pace: ReconnectPace, count: number): number[] => Array.from({ length: count }, () => pace.nextMs());

test("an agent asks a lost NATS server again at the same short intervals for ever", () => {
  expect(waits(new ReconnectPace(() => 0), 100)).toEqual(Array.from({ length: 100 }, () => 100));
  expect(new ReconnectPace(() => 1).nextMs()).toBe(250);
});

test("an agent asks a lost site often at first, then every second or two, and often again after a connect", () => {
  const pace = new ReconnectPace(() => 0.5, 1.1);
  let passedMs = 0;
  while (passedMs < 2_000) {
    const waitMs = pace.nextMs();
    expect(waitMs).toBeLessThan(500);
    passedMs += waitMs;
  }
  expect(waits(pace, 50).at(-1)).toBe(1_750);
  pace.connected();
  expect(pace.nextMs()).toBe(175);
});

test("an agent whose credential is refused waits for half a minute at most", () => {
  const pace = new ReconnectPace(() => 1);
  expect([pace.refused(), pace.refused()]).toEqual([true, false]);
  expect(pace.nextMs()).toBe(1_000);
  for (let count = 0; count < 20; count += 1) pace.refused();
  expect(pace.nextMs()).toBe(30_000);
});
