import { expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { heapShare, heapShareMax, refuseWithoutHeapRoom } from "../../services/gateway/http/bound-uploads.ts";
import { createServer } from "../../services/gateway/server.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";

test("while the heap is nearly full requests are turned away by the limit's name, and taken again when there is room", async () => {
  const clock = new TurnableClock();
  const log = createLog({ level: "silent", name: "test" });
  const server = createServer({ log, bodyBytesMax: 1_024, bodyLimitName: "test" });
  let share = 0.5;
  refuseWithoutHeapRoom(server, { clock, share: () => share });
  server.get("/", async () => "served");
  const status = async (): Promise<[number, string]> => {
    const { statusCode, body } = await server.inject("/");
    return [statusCode, body];
  };
  expect(await status()).toEqual([200, "served"]);
  share = heapShareMax + 0.01;
  await clock.advanceAwaiting(100);
  expect(await status()).toEqual([503, expect.stringMatching(/server_is_overloaded/)]);
  expect(await status()).toEqual([503, expect.stringContaining("heapShareMax")]);
  share = 0.5;
  await clock.advanceAwaiting(100);
  expect(await status()).toEqual([200, "served"]);
});

test("the share of the heap is one of this very process", () => {
  const before = heapShare();
  const kept = Array.from({ length: 1_000_000 }, (_, index) => ({ index }));
  expect(heapShare()).toBeGreaterThan(before);
  expect(kept).toHaveLength(1_000_000);
});
