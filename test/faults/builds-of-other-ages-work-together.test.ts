import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MeanMachine, offering, type Said } from "../bad-inputs/mean-machine.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const chunk = (content: string): Buffer => {
  const choices = [{ index: 0, delta: { content }, finish_reason: null }];
  const about = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: handMadeModel.id };
  return Buffer.from(`data: ${JSON.stringify({ ...about, choices })}\n\n`);
};

const answer = (): Said[] => [
  ["data", chunk("Hello "), 1],
  ["data", chunk("there"), 2],
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
    [
      "later, which tells what nobody knows yet,",
      { fieldOfTomorrow: [1, 2], shapes: ["chat-stream", "chat-telepathy"] },
    ],
    ["earlier, which knows of no credit, no attach and no lease,", {}],
  ])("%s is served whole", async (_, lies) => {
    expect(await served(lies)).toBe("Hello there");
  });

  test("that speaks another version of the wire is not asked for anything", async () => {
    await using machine = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "attic",
      catalogue: () => offering([handMadeModel]),
      answer,
    });
    const asked = machine.asked;
    for (let times = 0; times < 5; times += 1) machine.announce({ scale: 0.5, epoch: "of another kind" });
    const { status } = await endpoint.chat({ model: "another", says: "Hello" });
    expect(status).toBe(404);
    expect(machine.asked).toBeLessThanOrEqual(asked + 1);
    expect(machine.jobs).toEqual([]);
  });
});
