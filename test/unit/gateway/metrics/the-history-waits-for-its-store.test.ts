import { expect, test } from "vitest";
import type { Added } from "#shared/history/history.ts";
import { Sums } from "#shared/history/sums.ts";
import { HistoryWriter, minutesHeldMax } from "../../../../services/gateway/metrics/write-history.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

const minuteMs = 60_000;

function writerOn(store: { isAway: boolean }) {
  const clock = new TurnableClock();
  const added: Added[] = [];
  const logged: string[] = [];
  const note = (about: unknown, text?: string): void => void logged.push(text ?? String(about));
  const history = {
    async add(sums: Added): Promise<void> {
      added.push(sums);
      if (store.isAway) throw new Error("away");
    },
    visit: async () => undefined,
    since: async () => undefined,
  };
  const writer = new HistoryWriter({ history, gateway: "g", clock, log: { info: note, warn: note } });
  const end = (): void =>
    writer.add(
      {
        requests: 1,
        failed: 0,
        promptTokens: 1,
        completionTokens: 1,
        answered: 0,
        firstTokenMs: 0,
        durationMs: 1,
        model: null,
      },
      { machine: undefined, cachedTokens: undefined, code: "ok" },
    );
  return { clock, added, logged, writer, end };
}

/** Returns the requests that a store has that adds each number once. */
function storedOf(added: readonly Added[]): number {
  const numbered = new Map(added.map(({ sequence, sums }) => [sequence, sums]));
  const all = new Sums();
  for (const sums of numbered.values()) all.merge(sums);
  return all.rowOf("").counts[0] ?? 0;
}

test("sums are written once a minute, and silence writes nothing", async () => {
  const { clock, added, end } = writerOn({ isAway: false });
  end();
  expect(added).toEqual([]);
  await clock.advanceAwaiting(minuteMs);
  expect(storedOf(added)).toBe(1);
  await clock.advanceAwaiting(5 * minuteMs);
  expect(added).toHaveLength(1);
});

test("sums of a store that is away are kept under their number and added when it is back, with one line for each in the log", async () => {
  const store = { isAway: true };
  const { clock, added, logged, end } = writerOn(store);
  for (let minute = 0; minute < 10; minute += 1) {
    end();
    await clock.advanceAwaiting(minuteMs);
  }
  store.isAway = false;
  await clock.advanceAwaiting(minuteMs);
  expect(storedOf(added)).toBe(10);
  expect(new Set(added.slice(0, 10).map(({ sequence }) => sequence))).toEqual(new Set([1]));
  expect(logged).toEqual([expect.stringContaining("cannot be written"), expect.stringContaining("written again")]);
});

test("an outage without end keeps a bounded number of minutes, and the log counts the requests that are missing", async () => {
  const store = { isAway: true };
  const { clock, added, logged, end } = writerOn(store);
  for (let minute = 0; minute < minutesHeldMax + 3; minute += 1) {
    end();
    await clock.advanceAwaiting(minuteMs);
  }
  expect(logged.filter((line) => line.includes("1 requests are missing"))).toHaveLength(2);
  store.isAway = false;
  await clock.advanceAwaiting(minuteMs);
  expect(storedOf(added)).toBe(minutesHeldMax + 1);
});

test("a stop writes what is left", async () => {
  const { added, writer, end } = writerOn({ isAway: false });
  end();
  await writer.stop(AbortSignal.timeout(1_000));
  expect(storedOf(added)).toBe(1);
});
