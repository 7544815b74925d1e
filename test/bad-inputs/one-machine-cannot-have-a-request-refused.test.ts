import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewKey } from "#shared/records/issue-key.ts";
import { errorOf, type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering, type Said } from "./mean-machine.ts";
import { contentOf, saying } from "../harness/answer-payload.ts";

const dies: readonly Said[] = [["fault", { code: "upstream_error", message: "It broke off.", runtimeDied: true }, 1]];
const answers: readonly Said[] = [
  ["data", saying("fine"), 1],
  ["end", handMadeEnd, 2],
];

describe.skipIf(lentOnly("nats", "redis"))("a request under which runtimes die", () => {
  let fleet: Fleet;
  let operator: Operator;
  let machines: Record<"honest" | "one" | "other", MeanMachine>;
  const behaviour = { honest: answers, one: dies, other: dies };
  beforeAll(async () => {
    fleet = await startFleet({ machines: {} });
    operator = await Operator.on({ redisUrl: fleet.redis.url });
    const start = (machine: keyof typeof behaviour): Promise<MeanMachine> =>
      MeanMachine.start({
        natsUrl: fleet.nats.url,
        machine,
        catalogue: () => offering([{ ...handMadeModel, id: "shared" }]),
        answer: () => behaviour[machine],
      });
    machines = { honest: await start("honest"), one: await start("one"), other: await start("other") };
    // A model is listed as soon as one machine has told of it, and each machine is to be known.
    const known = async (): Promise<boolean> => {
      const { ids, unanswered } = await fleet.endpoint.models();
      return ids.includes("shared") && unanswered === null && Object.values(machines).every(({ asked }) => asked > 1);
    };
    await until(known, { what: "the machines to be known" });
  });
  afterAll(async () => {
    for (const machine of Object.values(machines ?? {})) await machine[Symbol.asyncDispose]();
    await operator?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });

  const issue = async (terms: Partial<NewKey> = {}): Promise<Endpoint> =>
    fleet.endpoint.withKey((await operator.issue(terms)).token.reveal());
  const ask = async (endpoint: Endpoint, says: string): Promise<[number, unknown]> => {
    const response = await endpoint.chat({ model: "shared", says });
    return response.status === 200
      ? [200, await contentOf(response)]
      : [response.status, (await errorOf(response)).code];
  };

  test("a machine that fails again and again does not have a request refused that other machines can answer", async () => {
    const bound = await issue({ machines: ["one"] });
    for (let times = 0; times < 4; times += 1) expect(await ask(bound, "again")).toEqual([502, "upstream_error"]);
    expect(await ask(await issue({ machines: ["honest"] }), "again")).toEqual([200, "fine"]);
  });

  test("two machines that die under the request of one key do not have the same request of another key refused", async () => {
    const bound = await issue({ machines: ["one", "other"] });
    expect(await ask(bound, "deadly")).toEqual([502, "poison_request"]);
    expect(await ask(bound, "deadly")).toEqual([502, "poison_request"]);
    expect(await ask(await issue({ machines: ["honest"] }), "deadly")).toEqual([200, "fine"]);
  });
});
