import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const textOf = (nonce: string, tokens: number): string =>
  Array.from({ length: tokens }, (_, index) => `${nonce}-${index} `).join("");

describe.skipIf(lentOnly("nats", "redis"))("a machine that dies", () => {
  let fleet: Fleet;
  beforeEach(async () => {
    fleet = await startFleet({
      machines: { attic: { models: ["scripted"] }, cellar: { models: ["scripted"] }, shed: { models: ["scripted"] } },
    });
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  /** How many jobs the machines run, as they told the gateway. */
  async function running(): Promise<number> {
    const metrics = await (await fetch(`${fleet.gateways[0]?.operationsUrl}/metrics`)).text();
    const told = [...metrics.matchAll(/^trunkline_machine_running\{.*\} (\d+)$/gm)];
    return told.reduce((sum, [, jobs]) => sum + Number(jobs), 0);
  }

  test("before the first token costs the client nothing but time, streamed or whole", async () => {
    const says = "/script tokens=50 first_ms=4000 nonce=abc";
    const streamed = fleet.endpoint.stream({ model: "scripted", says });
    const whole = fleet.endpoint.chat({ model: "scripted", says });
    await until(async () => (await running()) === 2, { what: "both requests to run" });
    await fleet.agent("attic").kill();
    await fleet.agent("cellar").kill();
    const stream = await streamed;
    expect(await stream.over).toBe("closed");
    expect([stream.done, stream.text]).toEqual([true, textOf("abc", 50)]);
    const answer = await whole;
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-trunkline-machine")).toBe("shed");
    expect(JSON.stringify(await answer.json())).toContain(textOf("abc", 50));
  });

  test("in the middle of a stream costs only time too, where another one has the model and goes on", async () => {
    const stream = await fleet.endpoint.stream({
      model: "scripted",
      says: "/script tokens=200 delay_ms=20 nonce=abc exit_at=100",
    });
    expect(await stream.over).toBe("closed");
    expect([stream.done, stream.text]).toEqual([true, textOf("abc", 200)]);
    expect(stream.comments.join()).toMatch(/: continued on (?:attic|cellar|shed)/);
  });

  test("by the request itself does not take the whole fleet along: it is not passed on a fourth time", async () => {
    await fleet.startAgent("loft", { models: ["scripted"] });
    const killing = { model: "scripted", says: "/script tokens=5 exit_at=0 nonce=killer" };
    const answer = await fleet.endpoint.chat(killing);
    const { code } = await errorOf(answer);
    expect([answer.status, code, answer.headers.get("x-should-retry")]).toEqual([502, "poison_request", "false"]);
    expect(await errorOf(await fleet.endpoint.chat(killing))).toMatchObject({ code: "poison_request" });
    const alive = ["attic", "cellar", "shed", "loft"].filter((machine) => !fleet.agent(machine).ended);
    expect(alive).toHaveLength(1);
    expect(await fleet.endpoint.answer({ model: "scripted", says: "/script tokens=1" })).toBe("token-0 ");
  });
});
