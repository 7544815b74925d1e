import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorIn } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { scriptedText } from "./scripted-request.ts";
import { payloadOf } from "../harness/answer-payload.ts";

const tokens = 6;
const toldWithinMs = 4_000;

/** The frame with this number: a token each, the last one with its finish, and then the end. */
function say(job: HandMadeJob, sequence: number): void {
  if (sequence > tokens) {
    job.say("end", handMadeEnd, sequence);
    return;
  }
  const token = payloadOf({ kind: "text", text: `abc-${sequence - 1} ` });
  const rest = sequence === tokens ? payloadOf({ kind: "finish", reason: "stop" }) : Buffer.of();
  job.say("data", Buffer.concat([token, rest]), sequence);
}

const all = Array.from({ length: tokens + 1 }, (_, index) => index + 1);

describe.skipIf(lentOnly("nats", "redis"))("frames of a machine", () => {
  let fleet: Fleet;
  let machines = 0;
  beforeAll(async () => void (fleet = await startFleet({ machines: {} })));
  afterAll(() => fleet[Symbol.asyncDispose]());

  /** A machine that sends these frames of a job, and answers an attach as it is told. */
  async function machineThat(sends: readonly number[], onAttach: (job: HandMadeJob, from: number) => void) {
    const jobs = new Map<string, HandMadeJob>();
    // Each of its own name: what is shared of the last one's list would speak of this one too soon.
    machines += 1;
    const agent = await HandMadeAgent.start({
      natsUrl: fleet.nats.url,
      machine: `attic-${machines}`,
      model: handMadeModel,
      onJob: (job) => {
        jobs.set(job.head.id, job);
        for (const sequence of sends) say(job, sequence);
      },
      onControl: (control) => {
        const job = control.kind === "attach" ? jobs.get(control.job) : undefined;
        if (job !== undefined && control.kind === "attach") onAttach(job, control.from);
      },
    });
    const known = async () => {
      const { ids, unanswered } = await fleet.endpoint.models();
      return ids.includes(handMadeModel.id) && unanswered === null;
    };
    await until(known, { what: "the machine to be known" });
    return agent;
  }

  const replay = (job: HandMadeJob, from: number): void => {
    for (const sequence of all.slice(from - 1)) say(job, sequence);
  };

  test.each([
    ["that come twice", [1, 1, 2, 2, 3, 4, 5, 6, 6, 7, 7]],
    ["that come in another order", [2, 1, 4, 3, 6, 5, 7]],
    ["of which some do not come", [1, 2, 5, 6, 7]],
    ["of which the first does not come", [2, 3, 4, 5, 6, 7]],
    ["of which the last does not come before the end", [1, 2, 3, 4, 5, 7]],
  ])("%s are asked for again where they are missing, and the answer is exact", async (_, sends) => {
    await using _agent = await machineThat(sends, replay);
    const stream = await fleet.endpoint.stream({ model: handMadeModel.id, says: "Hello" });
    expect(await stream.over).toBe("closed");
    expect([stream.done, stream.text]).toEqual([true, scriptedText("abc", tokens)]);
  });

  test.each<[string, (job: HandMadeJob) => void]>([
    ["are said to be lost", (job) => job.say("fault", { code: "stream_gap", message: "They are gone." }, 0)],
    ["are never sent again", () => undefined],
  ])("frames of a machine that %s are an error in the stream and no hole", async (_, onAttach) => {
    await using _agent = await machineThat([1, 2, 5, 6, 7], onAttach);
    const begunMs = performance.now();
    const stream = await fleet.endpoint.stream({ model: handMadeModel.id, says: "Hello" });
    expect(await stream.over).toBe("closed");
    expect(performance.now() - begunMs).toBeLessThan(toldWithinMs);
    expect(errorIn(stream.events.at(-1) ?? "").code).toBe("stream_gap");
    expect([stream.done, stream.text]).toEqual([false, scriptedText("abc", 2)]);
  });
});
