import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";

/** Answers last several times as long as gateways gather their placements. */
const answer = "/script tokens=6 delay_ms=40";
const prompts = 16;

describe.skipIf(lentOnly("nats", "redis"))("two gateways", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    const machine = { models: ["scripted"] };
    fleet = await startFleet({ gateways: 2, machines: { attic: machine, cellar: machine, loft: machine } });
  });
  afterAll(() => fleet?.[Symbol.asyncDispose]());

  async function answeredBy(endpoint: Endpoint, prompt: number): Promise<string | null> {
    const says = `${answer} nonce=n${prompt}\n${`The long words of prompt ${prompt}. `.repeat(200)}`;
    const response = await endpoint.chat({ model: "scripted", says });
    expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
    return response.headers.get("x-trunkline-machine");
  }

  test("a gateway finds a prompt again on the machine where the other gateway placed it", async () => {
    const [one, other] = fleet.endpoints;
    const used = new Set<string | null>();
    let found = 0;
    for (let prompt = 0; prompt < prompts; prompt += 1) {
      const [first = one, second = other] = prompt % 2 === 0 ? [one, other] : [other, one];
      if (first === undefined || second === undefined) throw new Error("there are two gateways");
      const machine = await answeredBy(first, prompt);
      used.add(machine);
      if ((await answeredBy(second, prompt)) === machine) found += 1;
    }
    expect(found).toBeGreaterThanOrEqual(prompts - 1);
    expect(used.size).toBeGreaterThan(1);
  });
});
