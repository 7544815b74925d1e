import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";

const conversations = 12;
const made = z.looseObject({ id: z.string() });

describe.skipIf(lentOnly("nats", "redis"))("two gateways that store responses", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    const machine = { models: ["scripted"] };
    const gatewayEnv = { TRUNKLINE_STORE_RESPONSES: "on" };
    fleet = await startFleet({ gateways: 2, machines: { attic: machine, cellar: machine }, gatewayEnv });
  });
  afterAll(() => fleet?.[Symbol.asyncDispose]());

  async function answered({ baseUrl, key }: Endpoint, fields: object) {
    const response = await fetch(`${baseUrl}/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "scripted", ...fields }),
    });
    expect(response.status).toBe(200);
    return { id: made.parse(await response.json()).id, machine: response.headers.get("x-trunkline-machine") };
  }

  test("a turn that names only the one before goes to its machine, which has cached the conversation", async () => {
    const [one, other] = fleet.endpoints;
    if (one === undefined || other === undefined) throw new Error("there are two gateways");
    const used = new Set<string | null>();
    let found = 0;
    for (let at = 0; at < conversations; at += 1) {
      const input = `/script tokens=6 delay_ms=40 nonce=n${at}\n${`The long words of conversation ${at}. `.repeat(200)}`;
      const first = await answered(one, { input });
      used.add(first.machine);
      const next = { previous_response_id: first.id, input: "/script tokens=1" };
      if ((await answered(other, next)).machine === first.machine) found += 1;
    }
    expect(found).toBeGreaterThanOrEqual(conversations - 1);
    expect(used.size).toBe(2);
  });
});
