import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

describe.skipIf(lentOnly("nats", "redis")).each([
  ["by a tunnel", true],
  ["to NATS", false],
])("the only machine with a model, connected %s beside a machine without a model server,", (_, tunnels) => {
  let fleet: Fleet;
  beforeEach(async () => {
    const noRuntime = { TRUNKLINE_RUNTIME: "auto", TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${await freePort()}` };
    const machines = { attic: { models: ["scripted"] }, cellar: { env: noRuntime } };
    fleet = await startFleet({ machines, tunnels });
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  const ask = () => refusalOf(fleet.endpoint.chat({ model: "scripted", says: "Hello" }));
  const isOffered = async (): Promise<boolean> => {
    const metrics = await MetricsText.scrape(fleet.gateway.operationsUrl);
    return metrics.value("trunkline_open_jobs") > 0;
  };

  test("is told as agent_offline when it is killed before it accepts a job, and from then on", async () => {
    const agent = fleet.agent("attic");
    await agent.freeze();
    const asked = ask();
    await until(isOffered, { what: "the job to be on its way" });
    await agent.kill();
    for (const each of [asked, ask()]) expect(await each).toMatchObject({ status: 503, code: "agent_offline" });
  });
});
