import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel as model, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { payloadOf } from "../harness/answer-payload.ts";

const stop = payloadOf({ kind: "finish", reason: "stop" });

describe.skipIf(lentOnly("nats", "redis"))("answer events of an agent", () => {
  let fleet: Fleet;
  let agent: HandMadeAgent;
  let onJob: (job: HandMadeJob) => void;
  beforeAll(async () => {
    fleet = await startFleet({ machines: {} });
    const { url: natsUrl } = fleet.nats;
    agent = await HandMadeAgent.start({ natsUrl, machine: "attic", model, onJob: (job) => onJob(job) });
    const listed = async (): Promise<boolean> => (await fleet.endpoint.models()).ids.includes(model.id);
    await until(listed, { what: "the hand-made model to be listed" });
  });
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    onJob = () => undefined;
  });

  const ask = (stream: boolean): Promise<Response> => fleet.endpoint.chat({ model: model.id, says: "hi", stream });

  test("answer events of an agent as answer events reaches a stream's client rendered, and then [DONE]", async () => {
    const text = '"}\n\ndata: [DONE]\n\n';
    onJob = ({ say }) => {
      say("data", payloadOf({ kind: "text", text }), 1);
      say("data", stop, 2);
      say("end", handMadeEnd, 3);
    };
    const told = await (await ask(true)).text();
    const events = told.split("\n\n").filter(Boolean);
    expect(events.pop()).toBe("data: [DONE]");
    const deltas = events.map((event) => JSON.parse(event.slice("data: ".length)).choices[0].delta.content as unknown);
    expect(deltas).toEqual(["", text, undefined]);
  });

  test("answer events of an agent as bytes that are no answer events reaches no client", async () => {
    for (const bytes of [Buffer.from("data: 1\n\n"), Buffer.from([0x00, 0xff, 0xfe, 0x7b])]) {
      onJob = ({ say }) => {
        say("data", bytes, 1);
        say("end", handMadeEnd, 2);
      };
      for (const stream of [true, false]) {
        const response = await ask(stream);
        expect([response.status, (await errorOf(response)).code]).toEqual([502, "upstream_error"]);
      }
    }
  });

  test.each(["key_expired", "backend_unavailable", "unknown_url"])(
    "answer events of an agent as a fault %s, of which a machine has nothing to say, is shown as an upstream error",
    async (code) => {
      onJob = ({ say }) => say("fault", { code, message: "You should not see this as mine." }, 1);
      const response = await ask(false);
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([502, null]);
      expect((await errorOf(response)).code).toBe("upstream_error");
    },
  );

  test("answer events of an agent as a fault of a code that this gateway does not know is shown as an upstream error", async () => {
    onJob = ({ say }) => say("fault", { code: "gremlins", message: "Something new went wrong." }, 1);
    const response = await ask(false);
    expect(response.status).toBe(502);
    expect(await response.json()).toEqual({
      error: { message: "Something new went wrong.", type: "server_error", param: null, code: "upstream_error" },
    });
  });
});
