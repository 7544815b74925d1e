import { expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { Catalogues } from "../../../services/gateway/fleet/catalogues.ts";
import type { ModelsSeen } from "#shared/store/known-models.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";

const minuteMs = 60_000;

/** A machine that offers two models, and a store that notes nothing while it is `away`. */
async function machineAndStore(store: { away: boolean }) {
  const noted: (readonly string[])[] = [];
  const clock = new TurnableClock();
  const catalogues = new Catalogues({
    ask: async () => [modelOf("llama3"), modelOf("qwen3")],
    knownModels: {
      remember: async ({ modelIds }: ModelsSeen) => {
        if (store.away) throw new Error("the store is away");
        noted.push(modelIds);
      },
      knows: async () => "known",
    },
    clock,
    log: createLog({ level: "silent", name: "test" }),
  });
  /** A second of the machine's life, with what it sets off. */
  const live = async (ms = 1_000): Promise<void> => {
    await clock.advanceAwaiting(ms);
    catalogues.follow(presenceOf("gpu-1"));
    await catalogues.settled();
    await clock.advanceAwaiting(0);
  };
  return { live, noted };
}

test("models are noted when they are first offered, and while they stay once an hour", async () => {
  const { live, noted } = await machineAndStore({ away: false });
  await live();
  expect(noted).toEqual([["llama3", "qwen3"]]);
  for (let minute = 0; minute < 59; minute += 1) await live(minuteMs);
  expect(noted).toHaveLength(1);
  await live(minuteMs);
  await live(minuteMs);
  expect(noted).toEqual([
    ["llama3", "qwen3"],
    ["llama3", "qwen3"],
  ]);
});

test("models that could not be noted are noted with the machine's next presence", async () => {
  const store = { away: true };
  const { live, noted } = await machineAndStore(store);
  await live();
  await live();
  store.away = false;
  expect(noted).toEqual([]);
  await live();
  expect(noted).toEqual([["llama3", "qwen3"]]);
});
