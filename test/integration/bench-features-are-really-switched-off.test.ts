import { pathToFileURL } from "node:url";
import { resolve } from "node:path";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { control, type Control } from "#shared/protocol/control.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { switchable, type Switchable } from "../bench/variants/switched-off/features.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet } from "../harness/start-fleet.ts";

const switches = resolve(import.meta.dirname, "../bench/variants/switched-off");

/** Which features showed in a fleet that was asked for two streams and then stopped. */
async function featuresSeen(off: readonly Switchable[]): Promise<Record<Switchable, boolean>> {
  const options = off.map((feature) => `--import=${pathToFileURL(resolve(switches, `${feature}.ts`)).href}`).join(" ");
  const env = { TRUNKLINE_TIME_SCALE: "0.2", ...(options !== "" && { NODE_OPTIONS: options }) };
  await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } }, env });
  const [gateway] = fleet.gateways;
  if (gateway === undefined) throw new Error("this fleet has no gateway");
  const watcher = await connect({ servers: fleet.nats.url });
  const told: Control["kind"][] = [];
  let beats = 0;
  watcher.subscribe("tl1.reply.*.*.beats", { callback: () => void (beats += 1) });
  watcher.subscribe("tl1.machine.*.*.control", {
    callback: (_, { data }) => void told.push(decodeJson(control, data)?.kind ?? "probe"),
  });
  await watcher.flush();

  // One lasts longer than several beats, and one is larger than what is told of at once.
  for (const says of ["/script tokens=100 delay_ms=10", "/script tokens=3000 delay_ms=0"]) {
    const stream = await fleet.endpoint.stream({ model: "scripted", says });
    await stream.over;
    expect(stream.events.at(-1)).toBe("[DONE]");
  }
  const metrics = await MetricsText.scrape(gateway.operationsUrl);
  await watcher.close();
  await gateway.terminate();
  await using operator = await Operator.on({ redisUrl: fleet.redis.url });
  const lines = await gateway.logLines();
  return {
    credit: told.includes("credit"),
    liveness: beats > 0,
    log: lines.some(({ msg }) => msg === "request"),
    meters: metrics.value("trunkline_requests_total") > 0,
    usage: (await operator.usage()).length > 0,
  };
}

describe.skipIf(lentOnly("nats", "redis"))("a feature that the bench measures", () => {
  test.each([
    { off: [], shown: switchable },
    ...switchable.map((feature) => ({ off: [feature], shown: switchable.filter((other) => other !== feature) })),
  ])("shows unless it is switched off: $off", async ({ off, shown }) => {
    const seen = await featuresSeen(off);
    expect(switchable.filter((feature) => seen[feature])).toEqual(shown);
  });
});
