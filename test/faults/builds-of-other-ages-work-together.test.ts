import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MeanMachine, offering, type Said } from "../bad-inputs/mean-machine.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { frameVersion } from "#shared/protocol/frame.ts";
import { payloadOf } from "../harness/answer-payload.ts";
import { trunkline } from "../harness/trunkline-command.ts";

const answer = (): Said[] => [
  ["data", payloadOf({ kind: "text", text: "Hello " }), 1],
  ["data", payloadOf({ kind: "text", text: "there" }, { kind: "finish", reason: "stop" }), 2],
  ["end", { ...handMadeEnd, fieldOfTomorrow: { a: 1 } }, 3],
];

describe.skipIf(lentOnly("nats", "redis"))("a machine of another build", () => {
  let fleet: Fleet;
  let endpoint: Endpoint;
  beforeAll(async () => {
    fleet = await startFleet({ machines: {} });
    ({ endpoint } = fleet);
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  async function served(lies: object): Promise<string> {
    await using machine = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "attic",
      catalogue: () => offering([{ ...handMadeModel, field_of_tomorrow: true }]),
      answer,
    });
    const known = async () => {
      machine.announce(lies);
      return (await endpoint.models()).ids.includes(handMadeModel.id);
    };
    await until(known, { what: "the machine to be known", intervalMs: 100 });
    const stream = await endpoint.stream({ model: handMadeModel.id, says: "Hello" });
    await stream.over;
    return stream.done ? stream.text : (stream.events.at(-1) ?? "nothing");
  }

  test.each([
    ["later, which tells what nobody knows yet,", { fieldOfTomorrow: [1, 2] }],
    ["earlier, which knows of no credit, no attach and no lease,", {}],
  ])("%s is served whole", async (_, lies) => {
    expect(await served(lies)).toBe("Hello there");
  });

  test.each([
    ["version 1, which tells of none,", undefined],
    ["a later version", frameVersion + 1],
  ])(
    "a machine of another build that speaks %s is named as such to operators and is asked for nothing",
    async (_, wire) => {
      await using machine = await MeanMachine.start({
        natsUrl: fleet.nats.url,
        machine: `other-${wire ?? 1}`,
        presence: () => ({ wire, shapes: ["chat-stream"] }),
        catalogue: () => offering([{ ...handMadeModel, id: "out-of-reach" }]),
        answer,
      });
      const settings = await fleet.operatorSettings();
      const told = async (): Promise<string | undefined> => {
        const { stdout } = await trunkline(["status"], settings);
        return stdout.split("\n").find((line) => line.includes(machine.machine));
      };
      const line = await until(told, { what: "the machine to be told of", intervalMs: 100 });
      expect(line).toContain("different versions of the wire");
      expect((await endpoint.models()).ids).not.toContain("out-of-reach");
      const { status } = await endpoint.chat({ model: "out-of-reach", says: "Hello" });
      expect(status).toBe(404);
      expect([machine.asked, machine.jobs]).toEqual([0, []]);
    },
  );
});
