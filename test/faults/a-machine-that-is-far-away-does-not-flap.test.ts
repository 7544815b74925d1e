import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { watchMachines } from "../harness/machine-states.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { lane } from "./lane.ts";
import { complaintsAbout } from "./oracle.ts";
import { ScriptedRequest } from "./scripted-request.ts";

/** A round trip of 1.1 s between the machine and NATS. */
const latencyMs = 550;
const timeout = 120_000;
const chats = lane.isWhole ? 10 : 2;
const streamTokens = lane.isWhole ? 600 : 100;

const fleets = {
  alone: {},
  ...(lane.isWhole && { "beside a near one": { cellar: { models: ["scripted"] } } }),
};

test.skipIf(lentOnly("nats", "redis")).each(Object.entries(fleets))(
  "a machine whose round trip to NATS is 1.1 s, %s, connects, stays there, and answers every chat",
  { timeout },
  async (_, near) => {
    await using fleet = await startFleet({
      machines: { attic: { models: ["scripted"] }, ...near },
      proxied: ["machines"],
      env: { TRUNKLINE_TIME_SCALE: String(lane.scale), TRUNKLINE_LOG_LEVEL: "debug" },
    });
    const asked: ScriptedRequest[] = [];
    const ask = (tokens: number, delayMs: number): ScriptedRequest => {
      const wish = { nonce: `far-${asked.length}`, model: "scripted", script: { tokens, delayMs } };
      const request = new ScriptedRequest(fleet.endpoint, { ...wish, stream: true });
      asked.push(request);
      return request;
    };
    const proxy = fleet.wayOf("machines", "attic");
    await fleet.agent("attic").kill();
    proxy.latencyMs = latencyMs;
    await fleet.startAgent("attic");
    const answered = (): number =>
      fleet.wire.jobs.filter(({ machine, kind, frames }) => {
        return machine === "attic" && kind === "chat" && frames.some((frame) => frame.kind === "end");
      }).length;
    const answeredBefore = answered();
    const servesAgain = async (): Promise<boolean> => {
      await ask(3, 0).over;
      return answered() > answeredBefore;
    };
    await until(servesAgain, { what: "the far machine to answer", timeoutMs: 30_000 });
    asked.splice(0);
    const watch = watchMachines(fleet.gateway.operationsUrl);
    const streams = [ask(streamTokens, 20), ask(streamTokens, 20)];
    for (let chat = 0; chat < chats; chat += 1) await ask(3, 0).over;
    await Promise.all(streams.map(({ over }) => over));
    const seen = await watch.end();
    expect(asked.map(({ outcome }) => outcome)).toEqual(asked.map(() => "answered"));
    expect(complaintsAbout({ clients: asked, gateways: [], machines: [] })).toEqual([]);
    expect(seen.offline).toBe(0);
    const lines = await fleet.agent("attic").logLines();
    expect(lines.filter(({ msg }) => msg === "the connection to NATS is lost")).toEqual([]);
  },
);
