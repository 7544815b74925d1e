import * as fc from "fast-check";
import { expect, test } from "vitest";
import { makeRoom } from "#shared/placing/make-room.ts";
import { MemoryReader } from "../../../services/agent/machine/model-memory.ts";

const residents = fc.array(
  fc.record({ model: fc.string(), memoryMb: fc.integer({ min: 1, max: 30_000 }), returnMs: fc.nat(60_000) }),
);

test("models that make room are enough, and none of them goes for nothing", () => {
  fc.assert(
    fc.property(residents, fc.nat(40_000), fc.nat(40_000), (all, neededMb, freeMb) => {
      const goes = makeRoom(all, { neededMb, freeMb });
      const sumOf = (some: typeof all): number => some.reduce((sum, { memoryMb }) => sum + memoryMb, freeMb);
      if (goes === undefined) {
        expect(sumOf(all)).toBeLessThan(neededMb);
        return;
      }
      expect(sumOf([...goes])).toBeGreaterThanOrEqual(goes.length === 0 ? 0 : neededMb);
      for (const each of goes) expect(sumOf(goes.filter((other) => other !== each))).toBeLessThan(neededMb);
    }),
  );
});

test("models that make room are those whose return is cheap for the memory that they free", () => {
  const all = [
    { model: "asked for often", memoryMb: 10_000, returnMs: 9_000 },
    { model: "asked for once", memoryMb: 10_000, returnMs: 900 },
    { model: "small", memoryMb: 1_000, returnMs: 50 },
  ];
  const goes = makeRoom(all, { neededMb: 9_500, freeMb: 0 });
  expect(goes?.map(({ model }) => model)).toEqual(["asked for once"]);
});

const lister = (text: string) => [
  { command: process.execPath, args: ["-p", JSON.stringify(text)], read: () => ({ totalMb: 24_000, freeMb: 9_000 }) },
];

test("the memory for models is that of the graphics cards, within the operator's bound", async () => {
  expect(await new MemoryReader({ tools: lister("cards") }).read()).toEqual({ totalMb: 24_000, freeMb: 9_000 });
  const bound = new MemoryReader({ boundMb: 20_000, tools: lister("cards") });
  expect(await bound.read()).toEqual({ totalMb: 20_000, freeMb: 9_000 });
});

test("the memory for models is that of the machine where no tool lists a card", async () => {
  const absent = [{ command: "no-such-tool-anywhere", args: [], read: () => ({ totalMb: 1, freeMb: 1 }) }];
  const { totalMb, freeMb } = await new MemoryReader({ tools: absent }).read();
  expect(totalMb).toBeGreaterThan(100);
  expect(freeMb).toBeGreaterThan(0);
});
