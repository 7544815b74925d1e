import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { MeanMachine, offering, type Said } from "./mean-machine.ts";
import { contentOf, saying } from "../harness/answer-payload.ts";

/** Names that would be orders, patterns or nothing at all, were they ever a part of a subject. */
const odd = ["*", ">", "a.b", "a b", "a\r\nPUB x 0\r\n\r\n", "../x", "$SYS.REQ", "_INBOX.x", "\u0000", "é".repeat(200)];
const canary = "odd*>.\r\nname";

const answers: Record<string, readonly Said[]> = {
  fine: [
    ["data", saying("fine"), 1],
    ["end", handMadeEnd, 2],
  ],
  long: [["fault", { code: "context_length_exceeded", message: "Too long.", param: "messages" }, 1]],
};

describe.skipIf(lentOnly("nats", "redis"))("names in a request", () => {
  let fleet: Fleet;
  let machine: MeanMachine;
  let answering = answers["fine"] ?? [];
  beforeAll(async () => {
    fleet = await startFleet({ machines: {} });
    machine = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "attic",
      hears: true,
      catalogue: () => offering([canary, "plain", "a.b"].map((id) => ({ ...handMadeModel, id }))),
      answer: () => answering,
    });
    await fleet.endpoint.untilListed(canary);
  });
  afterAll(async () => {
    await machine?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });

  test("is in no subject, whether a machine has it or not, and the broker stays connected", async () => {
    for (const model of [canary, ...odd, "plain"]) {
      const response = await fleet.endpoint.chat({ model, says: model, user: model });
      const isThere = [canary, "plain", "a.b"].includes(model);
      expect([model, response.status]).toEqual([model, isThere ? 200 : 404]);
      if (isThere) expect(await contentOf(response)).toBe("fine");
      else expect(await errorOf(response)).toMatchObject({ code: "model_not_found", param: "model" });
    }
    await machine.flush();
    expect(machine.jobs.map(({ head }) => head.model)).toEqual([canary, "a.b", "plain"]);
    const token = "[0-9A-Za-z_-]+";
    const known = new RegExp(
      `^tl1\\.(?:rollcall|placed\\.${token}|presence\\.attic|machine\\.attic\\.${token}\\.(?:job|control)|reply\\.${token}\\.attic\\.${token})$`,
    );
    expect(machine.heard.length).toBeGreaterThan(3 * 4);
    expect(machine.heard.filter((subject) => !known.test(subject))).toEqual([]);
    for (const gateway of fleet.gateways)
      expect(await gateway.stderr()).not.toContain("the connection to NATS is lost");
  });

  test("reaches its machine as it was sent, whatever characters it is of", async () => {
    const says = "\u0000\u0001\u001b[31m\r\n\u007f\u0085\u2028\u202e\ufeff😀\ud83d\udc69\u200d";
    answering = answers["fine"] ?? [];
    expect((await fleet.endpoint.chat({ model: "plain", says, stop: [says] })).status).toBe(200);
    const body: unknown = JSON.parse(Buffer.from(machine.jobs.at(-1)?.body ?? []).toString());
    expect(body).toEqual({ messages: [{ role: "user", content: says }], stop: [says] });
  });

  test.each([false, true])("and is too long has a true status, in a stream too: %s", async (stream) => {
    answering = answers["long"] ?? [];
    const response = await fleet.endpoint.chat({ model: "plain", says: "x ".repeat(10_000), stream });
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ code: "context_length_exceeded", param: "messages" });
  });
});
