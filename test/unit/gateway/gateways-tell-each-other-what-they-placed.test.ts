import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { createLog } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { limits } from "#shared/protocol/limits.ts";
import { placedPattern, placedSubject } from "#shared/protocol/subjects.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { PlacementSharing } from "../../../services/gateway/routing/share-placements.ts";
import { loadOn, peppersOf, promptOn, TestBook } from "../../harness/placement-book.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const timing = timingAt(1);

/** A site in this process; all that crosses its broker is kept. */
function site() {
  const clock = new TurnableClock();
  const logged: string[] = [];
  const log = createLog({ level: "warn", name: "test", write: (line) => void logged.push(JSON.parse(line).msg) });
  const network = new MemoryBroker({ clock, log });
  const tap = network.connect();
  const crossed: { readonly subject: string; readonly data: Buffer }[] = [];
  tap.subscribe(placedPattern, ({ subject, data }) => void crossed.push({ subject, data: Buffer.from(data) }));

  async function settle(): Promise<void> {
    for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  }
  async function pass(ms: number): Promise<void> {
    await clock.advanceAwaiting(ms);
    await settle();
  }
  function gateway(peppers: Peppers = peppersOf("a")) {
    const broker = network.connect();
    const book = new TestBook();
    const id = newToken();
    const sharing = new PlacementSharing({
      broker,
      gateway: id,
      book,
      peppers,
      site: { gateways: 2 },
      timing,
      clock,
      log,
    });
    onTestFinished(() => sharing.stop());
    /** Has these loads and prompts, and tells of them. */
    function say(loads: TestBook["own"], prompts: TestBook["placed"] = []): void {
      book.own = loads;
      book.placed.push(...prompts);
      sharing.changed();
    }
    async function tell(...said: Parameters<typeof say>): Promise<void> {
      say(...said);
      await pass(timing.placementsToldMs);
    }
    return { id, broker, book, sharing, say, tell };
  }
  return { clock, logged, tap, crossed, settle, pass, gateway };
}

test("placements are told at once, the next ones of 25 ms together, and a gateway hears its own ones not", async () => {
  const { gateway, pass, settle, crossed } = site();
  const [one, other] = [gateway(), gateway()];
  await settle();
  one.say([loadOn("attic", 7)]);
  await pass(0);
  expect(other.book.news.splice(0)).toEqual([{ loads: [loadOn("attic", 7)], prompts: [] }]);
  crossed.length = 0;
  for (const jobs of [1, 2]) {
    one.say([loadOn("attic", jobs, jobs * 100)], [promptOn("attic", [jobs, -jobs, 2 ** 31 - jobs], -7)]);
    await pass(10);
  }
  expect(crossed).toEqual([]);
  await pass(5);
  expect(crossed.map(({ subject }) => subject)).toEqual([placedSubject(one.id)]);
  expect(other.book.news).toEqual([
    {
      loads: [loadOn("attic", 2, 200)],
      prompts: [promptOn("attic", [1, -1, 2 ** 31 - 1], -7), promptOn("attic", [2, -2, 2 ** 31 - 2], -7)],
    },
  ]);
  expect(one.book.news).toEqual([]);
});

test("loads are repeated each second while there are any, so that a new gateway soon knows them", async () => {
  const { gateway, pass, crossed } = site();
  const one = gateway();
  await one.tell([loadOn("attic", 3, 50)]);
  const late = gateway();
  await pass(timing.placementsRepeatMs);
  expect(late.book.ofOthers.get(one.id)).toEqual([loadOn("attic", 3, 50)]);
  await one.tell([]);
  expect(late.book.ofOthers.size).toBe(0);
  crossed.length = 0;
  await pass(10 * timing.placementsRepeatMs);
  expect(crossed).toEqual([]);
});

test("a gateway that stops is forgotten at once, and leaves no timer", async () => {
  const { gateway, settle, clock } = site();
  const [one, other] = [gateway(), gateway()];
  await one.tell([loadOn("attic")]);
  expect(other.book.ofOthers.size).toBe(1);
  one.sharing.changed();
  one.sharing.stop();
  await settle();
  expect(other.book.ofOthers.size).toBe(0);
  other.sharing.stop();
  expect(clock.timersWaiting).toBe(0);
});

test("a gateway that is silent for 3 s is forgotten within the next one, and one that repeats its loads is not", async () => {
  const { gateway, pass } = site();
  const [dead, alive, other] = [gateway(), gateway(), gateway()];
  for (const each of [dead, alive]) each.say([loadOn("attic")]);
  await pass(0);
  dead.broker.cut();
  await pass(timing.placementsSilentMs - 1);
  expect([...other.book.ofOthers.keys()]).toEqual([dead.id, alive.id]);
  await pass(timing.placementsRepeatMs);
  expect([...other.book.ofOthers.keys()]).toEqual([alive.id]);
});

test("silence does not count while the own connection is down, nor while the own process stood still", async () => {
  const { gateway, pass, settle, clock } = site();
  const [one, other] = [gateway(), gateway()];
  await one.tell([loadOn("attic")]);
  for (const { broker } of [one, other]) broker.cut();
  await pass(2 * timing.placementsSilentMs);
  other.broker.restore();
  await pass(timing.placementsSilentMs - timing.placementsRepeatMs);
  expect(other.book.ofOthers.has(one.id)).toBe(true);
  one.broker.restore();
  await settle();
  one.broker.cut();
  clock.standStill(2 * timing.placementsSilentMs);
  await pass(0);
  await pass(timing.placementsSilentMs - timing.placementsRepeatMs);
  expect(other.book.ofOthers.has(one.id)).toBe(true);
  await pass(2 * timing.placementsRepeatMs);
  expect(other.book.ofOthers.has(one.id)).toBe(false);
});

test("placements cannot be read on the wire, and no message repeats the bytes of another", async () => {
  const { gateway, crossed } = site();
  const { tell } = gateway();
  for (let turn = 0; turn < 2; turn += 1) await tell([loadOn("attic")], [promptOn("attic", [0x41424344])]);
  const [, one = Buffer.alloc(0), other = Buffer.alloc(0)] = crossed.map(({ data }) => data);
  expect(one.length).toBe(other.length);
  for (const data of [one, other]) {
    expect(data.includes("attic")).toBe(false);
    expect(data.includes("DCBA")).toBe(false);
  }
  expect(one.subarray(1, 13).equals(other.subarray(1, 13))).toBe(false);
  expect(one.subarray(13, 40).equals(other.subarray(13, 40))).toBe(false);
});

test("placements under another pepper are dropped, and the log says so once", async () => {
  const { gateway, logged } = site();
  const [stranger, other] = [gateway(peppersOf("b")), gateway()];
  for (let turn = 0; turn < 3; turn += 1) await stranger.tell([loadOn("attic")]);
  expect(other.book.news).toEqual([]);
  expect(logged.filter((line) => line.includes("TRUNKLINE_KEY_PEPPER"))).toHaveLength(2);
});

test("while a pepper is replaced, loads are taken under both, and prompts under the same one only", async () => {
  const { gateway } = site();
  const [old, moved, fresh] = [gateway(peppersOf("a", "b")), gateway(peppersOf("b", "a")), gateway(peppersOf("b"))];
  await moved.tell([loadOn("attic", 5)], [promptOn("attic", [1, 2])]);
  expect(old.book.news.at(-1)).toEqual({ loads: [loadOn("attic", 5)], prompts: [] });
  expect(fresh.book.news.at(-1)).toEqual({ loads: [loadOn("attic", 5)], prompts: [promptOn("attic", [1, 2])] });
  await old.tell([loadOn("loft", 1)]);
  expect(moved.book.ofOthers.get(old.id)).toEqual([loadOn("loft", 1)]);
  expect(fresh.book.ofOthers.has(old.id)).toBe(false);
});

test("a message that is repeated, changed, sent in another gateway's name or old changes nothing", async () => {
  const { gateway, pass, settle, tap, crossed, clock, logged } = site();
  const [one, other] = [gateway(), gateway()];
  await one.tell([loadOn("attic", 9)]);
  const { data = Buffer.alloc(0) } = crossed.at(-1) ?? {};
  one.sharing.stop();
  await settle();
  const newsBefore = other.book.news.length;
  const say = async (gatewayId: string, bytes: Uint8Array): Promise<void> => {
    tap.publish(placedSubject(gatewayId), bytes);
    await settle();
  };
  await say(one.id, data);
  await say(newToken(), data);
  for (const at of [0, 1, 13, data.length - 1]) await say(one.id, data.with(at, (data[at] ?? 0) ^ 1));
  await say(one.id, data.subarray(0, 20));
  await say(one.id, Buffer.alloc(limits.placementsBytesMax + 1));
  await say("nobody", data);
  await pass(300_000);
  await say(one.id, data);
  expect(other.book.news).toHaveLength(newsBefore);
  const reasons = ["sent before", "a pepper that", "its version is another", "not what a gateway", "60 s off"];
  for (const reason of reasons)
    expect(
      logged.some((line) => line.includes(reason)),
      reason,
    ).toBe(true);
  const late = gateway();
  await say(one.id, data);
  expect(late.book.news).toEqual([]);
  expect(clock.timersWaiting).toBeGreaterThan(0);
});

test("the empty message of `trunkline doctor` is dropped without a word", async () => {
  const { gateway, settle, tap, logged } = site();
  const { book } = gateway();
  tap.publish(placedSubject(newToken()), new Uint8Array());
  await settle();
  expect({ news: book.news, logged }).toEqual({ news: [], logged: [] });
});

test("large news cross in bounded messages and arrive whole", async () => {
  const { gateway, settle, crossed, tap } = site();
  const [one, other] = [gateway(), gateway()];
  await settle();
  crossed.length = 0;
  const blocks = Array.from({ length: limits.placedBlocksMax }, (_, at) => at * 1_000_003);
  const loads = Array.from({ length: 3_000 }, (_, at) => loadOn(`gpu-${at}`, at));
  const told = Array.from({ length: 9 }, (_, at) => promptOn(`gpu-${at}`, [...blocks, 1]));
  await one.tell(loads, told);
  expect(crossed.length).toBeGreaterThan(2);
  for (const { data } of crossed) expect(data.length).toBeLessThanOrEqual(limits.placementsBytesMax);
  const prompts = Array.from({ length: 9 }, (_, at) => promptOn(`gpu-${at}`, blocks));
  expect(other.book.news.at(-1)).toEqual({ loads, prompts });

  const late = gateway();
  for (const sent of [crossed.at(0), crossed.at(-1)]) tap.publish(placedSubject(one.id), sent?.data ?? Buffer.of());
  await settle();
  expect(late.book.news).toEqual([]);
});

test("of more prompts than four messages hold the first ones are told, and the log says that some were not", async () => {
  const { gateway, logged } = site();
  const [one, other] = [gateway(), gateway()];
  const blocks = Array.from({ length: limits.placedBlocksMax }, () => 1);
  const prompts = Array.from({ length: 20 }, () => promptOn("attic", blocks));
  await one.tell([loadOn("attic", 20)], prompts);
  const news = other.book.news.at(-1);
  expect(news).toMatchObject({ loads: [loadOn("attic", 20)] });
  expect(news !== "gone" && news?.prompts.length).toBe(12);
  expect(logged).toEqual([expect.stringContaining("too many to be told")]);
});
