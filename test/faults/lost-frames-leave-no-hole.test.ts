import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorIn, errorOf, refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { scriptedText } from "./scripted-request.ts";
import { payloadOf } from "../harness/answer-payload.ts";

const tokens = 6;
const toldWithinMs = 4_000;

/** The frame with this number: a token each, the last one with its finish, and then the end. */
function sayFrame(job: HandMadeJob, sequence: number): void {
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
        for (const sequence of sends) sayFrame(job, sequence);
      },
      onControl: (control) => {
        const job = control.kind === "attach" ? jobs.get(control.job) : undefined;
        if (job !== undefined && control.kind === "attach") onAttach(job, control.from);
      },
    });
    await untilKnown();
    return agent;
  }

  function untilKnown(): Promise<boolean> {
    const known = async (): Promise<boolean> => {
      const { ids, unanswered } = await fleet.endpoint.models();
      return ids.includes(handMadeModel.id) && unanswered === null;
    };
    return until(known, { what: "the machine to be known" });
  }

  const replay = (job: HandMadeJob, from: number): void => {
    for (const sequence of all.slice(from - 1)) sayFrame(job, sequence);
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

  describe("answer events of an agent", () => {
    let agent: HandMadeAgent;
    let onJob: (job: HandMadeJob) => void;
    beforeAll(async () => {
      const { url: natsUrl } = fleet.nats;
      agent = await HandMadeAgent.start({
        natsUrl,
        machine: "attic",
        model: handMadeModel,
        onJob: (job) => onJob(job),
      });
      await untilKnown();
    });
    afterAll(() => agent[Symbol.asyncDispose]());

    const ask = (stream: boolean): Promise<Response> =>
      fleet.endpoint.chat({ model: handMadeModel.id, says: "hi", stream });

    test("answer events of an agent as answer events reaches a stream's client rendered, and then [DONE]", async () => {
      const text = '"}\n\ndata: [DONE]\n\n';
      onJob = ({ say }) => {
        say("data", payloadOf({ kind: "text", text }), 1);
        say("data", payloadOf({ kind: "finish", reason: "stop" }), 2);
        say("end", handMadeEnd, 3);
      };
      const told = await (await ask(true)).text();
      const events = told.split("\n\n").filter(Boolean);
      expect(events.pop()).toBe("data: [DONE]");
      const deltas = events.map(
        (event) => JSON.parse(event.slice("data: ".length)).choices[0].delta.content as unknown,
      );
      expect(deltas).toEqual(["", text, undefined]);
    });

    test("bytes of an agent that are no answer events reach no client", async () => {
      for (const bytes of [Buffer.from("data: 1\n\n"), Buffer.from([0x00, 0xff, 0xfe, 0x7b])]) {
        onJob = ({ say }) => {
          say("data", bytes, 1);
          say("end", handMadeEnd, 2);
        };
        for (const stream of [true, false]) {
          expect(await refusalOf(ask(stream))).toMatchObject({ status: 502, code: "upstream_error" });
        }
      }
    });

    test.each(["key_expired", "backend_unavailable", "unknown_url", "gremlins"])(
      "a fault %s, of which a machine has nothing to say, is shown as an upstream error",
      async (code) => {
        onJob = ({ say }) => say("fault", { code, message: "Something new went wrong." }, 1);
        const response = await ask(false);
        expect([response.status, response.headers.get("www-authenticate")]).toEqual([502, null]);
        const error = await errorOf(response);
        expect(error).toMatchObject({ type: "server_error", param: null, code: "upstream_error" });
        if (code === "gremlins") expect(error.message).toBe("Something new went wrong.");
      },
    );
  });
});
