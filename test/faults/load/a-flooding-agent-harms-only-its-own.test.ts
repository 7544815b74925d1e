import { setTimeout as pass } from "node:timers/promises";
import { expect, test } from "vitest";
import { HandMadeAgent, handMadeEnd, handMadeModel, type HandMadeJob } from "../../harness/hand-made-agent.ts";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet, ordinaryChats } from "../../harness/load/balanced-fleet.ts";
import { until } from "../../harness/until.ts";
import { onlyInWholeLane } from "../lane.ts";
import { sized, testTimeoutMs } from "./lane.ts";
import { payloadOf } from "../../harness/answer-payload.ts";

const count = sized({ fast: 500, whole: 5_000 });
const atOnce = 20;
const floodMib = sized({ fast: 128, whole: 1_024 });
const frameBytes = 64 * 1024;
/** Some 25 MiB a second, which is a hundred times what a fast model says; more would only measure this computer. */
const framesAtOnce = 2;
const pauseMs = 5;

test.skipIf(lentOnly("nats", "redis") || onlyInWholeLane("an agent that floods"))(
  "an agent that sends far more than anybody takes, and heeds nothing, harms only its own stream: all others are served whole",
  async () => {
    await using fleet = await BalancedFleet.start({ gateways: 1, machines: { attic: ["scripted"] } });
    const wish = { wish: ordinaryChats, pace: { atOnce }, count };
    const alone = await fleet.load(wish).over;
    let floodedFrames = 0;
    const flood = async ({ say }: HandMadeJob): Promise<void> => {
      const bytes = payloadOf({ kind: "text", text: "x".repeat(frameBytes) });
      const frames = (floodMib * 1024 * 1024) / frameBytes;
      while (floodedFrames < frames) {
        for (let more = 0; more < framesAtOnce; more += 1) say("data", bytes, (floodedFrames += 1));
        await pass(pauseMs);
      }
      say("end", handMadeEnd, floodedFrames + 1);
    };
    await using _agent = await HandMadeAgent.start({
      natsUrl: fleet.nats.url,
      machine: "flood",
      model: handMadeModel,
      onJob: (job) => void flood(job),
    });
    const { id: model } = handMadeModel;
    await fleet.endpoint.untilListed(model);
    const leaving = new AbortController();
    const flooded = fleet.endpoint.stream({ model, says: "Hello" }, leaving.signal).catch(() => undefined);
    await until(() => floodedFrames > framesAtOnce, { what: "the flood" });
    const beside = await fleet.load(wish).over;
    leaving.abort();
    const ratio = (beside.times.totalP99Ms ?? 0) / (alone.times.totalP99Ms ?? 1);
    console.log(
      [
        alone.summary("others alone"),
        `${beside.summary("others beside the flood")}; p99 ${ratio.toFixed(2)} times as long as alone`,
        `${Math.round((floodedFrames * frameBytes) / 1024 / 1024)} MiB flooded`,
      ].join("\n"),
    );
    expect(beside.told).toEqual({});
    expect(beside.of("exact")).toBe(count);
    await (
      await flooded
    )?.over;
  },
  testTimeoutMs,
);
