import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { errorIn, errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering, type Said } from "./mean-machine.ts";
import { payloadOf } from "../harness/answer-payload.ts";

/** Whole records of 1,025 bytes. */
const frameBytes = 205_000;
const text = (content: string): Buffer => payloadOf({ kind: "text", text: content });
const stop = payloadOf({ kind: "finish", reason: "stop" });

/** An answer of so many bytes at once, whatever credit there is. */
function atOnce(bytes: number): readonly Said[] {
  const frames = Math.ceil(bytes / frameBytes);
  const piece = Buffer.alloc(frameBytes, `t1019:${"x".repeat(1_019)}`);
  const data = Array.from({ length: frames }, (_, place): Said => ["data", piece, place + 1]);
  return [...data, ["end", handMadeEnd, frames + 1]];
}

/** These pieces, each in a frame, and then the end of a success. */
function inFrames(...pieces: readonly (string | Buffer)[]): readonly Said[] {
  const data = pieces.map((piece, place): Said => ["data", Buffer.from(piece), place + 1]);
  return [...data, ["end", handMadeEnd, pieces.length + 1]];
}

describe.skipIf(lentOnly("nats", "redis"))("a machine that breaks the rules of the wire", () => {
  let fleet: Fleet;
  let mean: MeanMachine;
  let answer: readonly Said[];
  beforeAll(async () => {
    fleet = await startFleet({ machines: {} });
    mean = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "mean",
      catalogue: () => offering([{ ...handMadeModel, id: "mean" }]),
      answer: () => answer,
    });
    await fleet.endpoint.untilListed("mean");
  });
  afterAll(async () => {
    await mean?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    answer = inFrames(text("fine"), stop);
  });

  const ask = (stream: boolean): Promise<Response> => fleet.endpoint.chat({ model: "mean", says: "hi", stream });
  const outcomeOf = async (response: Response): Promise<unknown> => {
    const request = response.headers.get("x-request-id");
    const [gateway] = fleet.gateways;
    const isLine = (line: { readonly msg: string; readonly [field: string]: unknown }): boolean =>
      line.msg === "request" && line["request"] === request;
    const line = await until(async () => (await gateway?.logLines())?.find(isLine), {
      what: "the line of the request",
    });
    return line["outcome"];
  };

  test.each([1, 4])(
    "a machine that breaks the rules of the wire loses %s whole answers that exceed their credit",
    async (count) => {
      answer = atOnce(limits.wholeCreditBytes * 3);
      const responses = await Promise.all(Array.from({ length: count }, () => ask(false)));
      for (const response of responses) {
        expect(response.status).toBe(502);
        expect(await errorOf(response)).toMatchObject({
          code: "upstream_error",
          message: expect.stringContaining("violated the protocol"),
        });
      }
    },
  );

  test("a machine that breaks the rules of the wire loses a stream that exceeds the credit that its client leaves", async () => {
    answer = atOnce(limits.streamCreditBytes * 64);
    const response = await ask(true);
    // The client reads nothing until the gateway has given the answer up.
    expect(await outcomeOf(response)).toBe("upstream_error");
    await response.text().catch(() => undefined);
  });

  test.each<[string, string | Buffer]>([
    ["a [DONE]", "data: [DONE]\n\n"],
    ["a [DONE] behind a text", Buffer.concat([text("two"), Buffer.from("data: [DONE]\n\n")])],
    ["an event of its own", `data: ${JSON.stringify({ choices: [] })}\n\n`],
    ["a comment", ": hello\n\n"],
    ["bytes that are not UTF-8", Buffer.of(0x74, 0x31, 0x3a, 0x80)],
    ["a record of an endless length", `j${"9".repeat(30)}:`],
  ])(
    "a machine that breaks the rules of the wire loses its stream at %s, of which no byte reaches the client",
    async (_, piece) => {
      answer = inFrames(text("one"), piece, text("three"), stop);
      const response = await ask(true);
      const events = (await response.text()).split("\n\n").filter(Boolean);
      expect(events).toEqual([
        expect.stringContaining('"role":"assistant"'),
        expect.stringContaining('"content":"one"'),
        expect.stringMatching(/^data: \{"error":/),
      ]);
      expect(errorIn(events.at(-1)?.slice("data: ".length) ?? "").code).toBe("upstream_error");
      expect(await outcomeOf(response)).toBe("upstream_error");
    },
  );

  test("a machine that breaks the rules of the wire passes on a text that holds [DONE], escaped inside a delta", async () => {
    const said = '"}}]}\n\ndata: [DONE]\n\n';
    answer = inFrames(text(said), stop);
    const events = (await (await ask(true)).text()).split("\n\n").filter(Boolean);
    expect(events.slice(1)).toEqual([
      expect.stringContaining(`"content":${JSON.stringify(said)}`),
      expect.stringContaining('"finish_reason":"stop"'),
      "data: [DONE]",
    ]);
  });

  test("a machine that breaks the rules of the wire is asked last after it has done so again and again", async () => {
    answer = inFrames("data: [DONE]\n\n");
    const opened = async (): Promise<boolean> => {
      await (await ask(true)).text();
      const lines = (await fleet.gateways[0]?.logLines()) ?? [];
      return lines.some((line) => line.msg.includes("fails all the time") && line["machine"] === "mean");
    };
    await until(opened, { what: "the breaker to open" });
  });
});
