import { describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { HandMadeAgent, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { laneOf } from "./lane.ts";
import { LeftBehind } from "./left-behind.ts";

const machines = 200;
const backWithinMs = 5_000;
/** What the host needs for two hundred connections of one test process beside it. */
const hostAddsMs = 1_500;

describe.skipIf(lentOnly("nats", "redis") || !laneOf(process.env).isWhole)("after a restart of NATS", () => {
  test(
    `${machines} machines are back within 5 s, none is forgotten, and requests are answered meanwhile`,
    { timeout: 90_000 },
    async () => {
      await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
      await using parts = new AsyncDisposableStack();
      const names = Array.from({ length: machines }, (_, place) => `machine-${place}`);
      for (const machine of names) {
        const agent = HandMadeAgent.start({
          natsUrl: fleet.nats.url,
          machine,
          model: handMadeModel,
          onJob: () => undefined,
        });
        parts.use(await agent);
      }
      await using watch = await LeftBehind.of(fleet);
      await fleet.nats.restart();
      const restartedAtMs = performance.now();
      watch.forgetPresences();
      const all = (): boolean => names.every((machine) => watch.presenceOf(machine) !== undefined);
      await until(all, { what: "every machine to be heard", timeoutMs: backWithinMs + hostAddsMs });
      const served = async () => (await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" })).ok;
      await until(served, { what: "a chat", timeoutMs: backWithinMs });
      expect(performance.now() - restartedAtMs).toBeLessThan(backWithinMs + hostAddsMs);
      const listed = async () => (await fleet.endpoint.models()).unanswered === null;
      await until(listed, { what: "a list that all have answered to", timeoutMs: backWithinMs });
    },
  );
});
