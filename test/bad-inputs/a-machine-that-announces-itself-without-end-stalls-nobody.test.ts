import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeModel } from "../harness/hand-made-agent.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering } from "./mean-machine.ts";

const floodOf = 40_000;
const dropped = "trunkline_messages_dropped_total";

describe.skipIf(lentOnly("nats", "redis"))("a machine that announces itself tens of thousands of times", () => {
  let fleet: Fleet;
  let mean: MeanMachine;
  beforeAll(async () => {
    fleet = await startFleet({ machines: { honest: { models: ["scripted"] } } });
    mean = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "mean",
      announces: false,
      catalogue: () => offering([{ ...handMadeModel, id: "mean" }]),
    });
    await until(() => lists("mean"), { what: "the machine to be listed" });
  });
  afterAll(async () => {
    await mean?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });

  const lists = async (id: string): Promise<boolean> => (await fleet.endpoint.models()).ids.includes(id);
  const droppedOf = async (machine: string): Promise<number> =>
    (await MetricsText.scrape(fleet.gateway.operationsUrl)).value(dropped, { machine });

  test("a machine that announces itself tens of thousands of times is dropped unread, counted and told once, and everybody else is served meanwhile", async () => {
    const before = await droppedOf("mean");
    const flood = async (): Promise<void> => {
      for (let at = 0; at < floodOf; at += 1) {
        mean.announce({ running: at, catalogueDigest: `d${at}` });
        // NATS cuts a client that answers no ping while it publishes.
        if (at % 1_000 === 999) await mean.flush();
      }
      await mean.flush();
    };
    const flooding = flood();
    const served = await Promise.all(
      Array.from({ length: 20 }, () => fleet.endpoint.answer({ model: "scripted", says: "/script tokens=2 nonce=x" })),
    );
    expect(new Set(served)).toEqual(new Set(["x-0 x-1 "]));
    await flooding;
    const isCounted = async (): Promise<boolean> => (await droppedOf("mean")) - before > floodOf * 0.95;
    await until(isCounted, { what: "the flood to be counted" });
    const lines = (await fleet.gateways[0]?.logLines()) ?? [];
    expect(lines.filter(({ msg }) => msg.includes("announces itself too often"))).toMatchObject([{ machine: "mean" }]);
    expect(lines.filter(({ msg }) => msg.includes("connection to NATS is lost"))).toEqual([]);
    expect(await droppedOf("honest")).toBe(0);
  });

  test("a machine that announces itself tens of thousands of times is heard again when it has stopped: its goodbye takes its models from the list", async () => {
    await until(() => (mean.announce(), lists("mean")), { what: "the machine to be listed again", intervalMs: 200 });
    const isGone = async (): Promise<boolean> => (mean.announce({ state: "gone" }), !(await lists("mean")));
    await until(isGone, { what: "the goodbye to be heard", intervalMs: 200 });
  });

  test(`a machine that announces itself tens of thousands of times is not read where one announcement has more than ${limits.presenceBytesMax} bytes`, async () => {
    const slotsOfMean = async (): Promise<number> =>
      (await MetricsText.scrape(fleet.gateway.operationsUrl)).value("trunkline_machine_slots", {
        machine: "mean",
      });
    const isBack = async (): Promise<boolean> => (mean.announce({ slots: 2 }), (await slotsOfMean()) === 2);
    await until(isBack, { what: "the machine to be back", intervalMs: 200 });
    const large = { slots: 3, more: "x".repeat(limits.presenceBytesMax) };
    const isTold = async (): Promise<boolean> => {
      mean.announce(large);
      const lines = (await fleet.gateways[0]?.logLines()) ?? [];
      return lines.some(({ msg, subject }) => msg.includes("does not understand") && subject === "tl1.presence.mean");
    };
    await until(isTold, { what: "the gateway to tell of it", intervalMs: 200 });
    expect(await slotsOfMean()).toBe(2);
  });
});
