import { expect, test } from "vitest";
import { saying } from "../../harness/answer-payload.ts";
import { lentOnly } from "../../harness/found-servers.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel } from "../../harness/hand-made-agent.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { until } from "../../harness/until.ts";
import { onlyInWholeLane } from "../lane.ts";
import { testTimeoutMs } from "./lane.ts";

const agents = 200;
const backWithinMs = 5_000;

test.skipIf(lentOnly("nats", "redis") || onlyInWholeLane("two hundred agents that come back"))(
  `NATS that is restarted under many machines has all ${agents} back in ${backWithinMs} ms, at every gateway, and none is forgotten`,
  async () => {
    await using fleet = await BalancedFleet.start({ gateways: 2, machines: { attic: ["scripted"] } });
    await using parts = new AsyncDisposableStack();
    const ids = Array.from({ length: agents }, (_, index) => `hand-made-${index}`);
    for (const id of ids) {
      const agent = await HandMadeAgent.start({
        natsUrl: fleet.nats.url,
        machine: id,
        model: { ...handMadeModel, id },
        onJob: ({ say }) => {
          say("data", saying("Hello"), 1);
          say("end", handMadeEnd, 2);
        },
      });
      parts.use(agent);
    }
    const endpoints = fleet.gateways.map(({ baseUrl }) => fleet.endpoint.at(baseUrl));
    const allThere = async (): Promise<boolean> => {
      const told = await Promise.all(endpoints.map((endpoint) => endpoint.models()));
      return told.every((list) => list.unanswered === null && ids.every((id) => list.ids.includes(id)));
    };
    /** The list of models may be of just before: who gets work is there. */
    const allServe = async (): Promise<boolean> => {
      const asked = endpoints.flatMap((endpoint) =>
        ids.map(async (model) => (await endpoint.chat({ model, says: "Hello" })).status),
      );
      return (await Promise.all(asked)).every((status) => status === 200);
    };
    await until(allThere, { what: "all agents", timeoutMs: 20_000 });
    await fleet.nats.restart();
    const restartedAtMs = performance.now();
    await until(allServe, { what: "all agents again", timeoutMs: backWithinMs });
    console.log(`${agents} agents back ${Math.round(performance.now() - restartedAtMs)} ms after the restart`);
    expect(await allThere()).toBe(true);
  },
  testTimeoutMs,
);
