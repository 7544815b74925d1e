import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { SlotsByLoad } from "../../../services/agent/runtimes/openai/slots-by-load.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const { signal } = new AbortController();

async function serverTelling(metrics: { text: string | undefined }) {
  const clock = new TurnableClock();
  const connection = { text: async (): Promise<string> => metrics.text ?? Promise.reject(new Error("404")) };
  const byLoad = new SlotsByLoad({ connection, clock });
  await byLoad.begin(signal);
  /** Returns the slots after each of so many looks. */
  const look = async (times: number): Promise<number[]> => {
    const slots: number[] = [];
    for (let each = 0; each < times; each += 1) {
      clock.advance(2_000);
      await nextTurn();
      slots.push(byLoad.slots);
    }
    return slots;
  };
  return { byLoad, clock, look };
}

const vllm = (running: number, waiting: number): string =>
  `vllm:num_requests_running{engine="0"} ${running}\nvllm:num_requests_waiting{engine="0"} ${waiting}\n`;

test("the slots of a server that reports its load grow by one each 2 s while all are in use, to 256 at most", async () => {
  const metrics = { text: vllm(0, 0) };
  const { byLoad, look } = await serverTelling(metrics);
  expect([byLoad.slots, byLoad.isGuess]).toEqual([4, false]);
  expect(await look(2)).toEqual([4, 4]);
  metrics.text = vllm(4, 0);
  expect(await look(2)).toEqual([5, 5]);
  metrics.text = vllm(300, 0);
  expect((await look(300)).at(-1)).toBe(256);
});

test("the slots of a server that reports its load shrink to the running requests when requests wait there, and not for one that has just arrived", async () => {
  const metrics = { text: vllm(40, 0) };
  const { look } = await serverTelling(metrics);
  expect((await look(16)).at(-1)).toBe(20);
  metrics.text = vllm(12, 8);
  expect(await look(3)).toEqual([20, 12, 12]);
  metrics.text = vllm(12, 0);
  expect(await look(2)).toEqual([13, 13]);
});

test("the slots of a server that reports its load stay while a look fails, and leave no timer behind", async () => {
  const metrics: { text: string | undefined } = { text: vllm(9, 0) };
  const { byLoad, clock, look } = await serverTelling(metrics);
  metrics.text = undefined;
  expect(await look(2)).toEqual([4, 4]);
  byLoad.close();
  expect(clock.timersWaiting).toBe(0);
});

test.each([undefined, "process_start_time_seconds 1\n"])(
  "the slots of a server that reports its load are a guess where it reports %j",
  async (text) => {
    const { byLoad, clock } = await serverTelling({ text });
    expect([byLoad.slots, byLoad.isGuess, clock.timersWaiting]).toEqual([4, true, 0]);
  },
);
