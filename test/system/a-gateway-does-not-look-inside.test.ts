import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { errorIn, errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel as model, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const odd = Buffer.from([0x00, 0xff, 0xfe, 0x7b, 0x22, 0x0d, 0x0a, 0x80]);

describe.skipIf(lentOnly("nats", "redis"))("what an agent sends", () => {
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

  test("in data frames reaches a stream's client byte for byte, JSON or not, and then [DONE]", async () => {
    onJob = ({ say }) => {
      say("data", odd, 1);
      say("data", Buffer.from("not json\n\n"), 2);
      say("end", handMadeEnd, 3);
    };
    const bytes = Buffer.from(await (await ask(true)).arrayBuffer());
    expect(bytes).toEqual(Buffer.concat([odd, Buffer.from("not json\n\ndata: [DONE]\n\n")]));
  });

  test("as a whole answer reaches its client byte for byte", async () => {
    onJob = ({ say }) => {
      say("data", odd, 1);
      say("data", odd, 2);
      say("end", handMadeEnd, 3);
    };
    expect(Buffer.from(await (await ask(false)).arrayBuffer())).toEqual(Buffer.concat([odd, odd]));
  });

  test("twice is passed on once, and with a hole ends the stream as a failure", async () => {
    onJob = ({ say }) => {
      say("data", Buffer.from("data: 1\n\n"), 1);
      say("data", Buffer.from("data: 1\n\n"), 1);
      say("data", Buffer.from("data: 3\n\n"), 3);
      say("end", handMadeEnd, 4);
    };
    const events = (await (await ask(true)).text()).split("\n\n").filter(Boolean);
    expect(events).toEqual(["data: 1", expect.stringContaining("stream_gap")]);
  });

  test("as an end that leaves a frame out is no success", async () => {
    onJob = ({ say }) => {
      say("data", Buffer.from("data: 1\n\n"), 1);
      say("end", handMadeEnd, 3);
    };
    const text = await (await ask(true)).text();
    expect(text).not.toContain("[DONE]");
    expect(errorIn(text.trimEnd().split("data: ").at(-1) ?? "").code).toBe("stream_gap");
  });

  test.each(["key_expired", "backend_unavailable", "unknown_url"])(
    "as a fault %s, of which a machine has nothing to say, is shown as an upstream error",
    async (code) => {
      onJob = ({ say }) => say("fault", { code, message: "You should not see this as mine." }, 1);
      const response = await ask(false);
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([502, null]);
      expect((await errorOf(response)).code).toBe("upstream_error");
    },
  );

  test("as a fault of a code that this gateway does not know is shown as an upstream error", async () => {
    onJob = ({ say }) => say("fault", { code: "gremlins", message: "Something new went wrong." }, 1);
    const response = await ask(false);
    expect(response.status).toBe(502);
    expect(await response.json()).toEqual({
      error: { message: "Something new went wrong.", type: "server_error", param: null, code: "upstream_error" },
    });
  });
});
