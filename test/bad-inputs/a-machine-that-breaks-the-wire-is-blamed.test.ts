import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { systemClock as clock, type Timer } from "#shared/process/clock.ts";
import { limits } from "#shared/protocol/limits.ts";
import { errorIn, errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering, type Said } from "./mean-machine.ts";

const frameBytes = 200_000;
const event = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;

/** An answer of so many bytes at once, whatever credit there is. */
function atOnce(bytes: number): readonly Said[] {
  const frames = Math.ceil(bytes / frameBytes);
  const piece = event("x".repeat(frameBytes - event("").length));
  const data = Array.from({ length: frames }, (_, place): Said => ["data", Buffer.from(piece), place + 1]);
  return [...data, ["end", handMadeEnd, frames + 1]];
}

/** These pieces, each in a frame, and then the end of a success. */
function inFrames(...pieces: readonly string[]): readonly Said[] {
  const data = pieces.map((piece, place): Said => ["data", Buffer.from(piece), place + 1]);
  return [...data, ["end", handMadeEnd, pieces.length + 1]];
}

describe.skipIf(lentOnly("nats", "redis"))("a machine that breaks the rules of the wire", () => {
  let fleet: Fleet;
  let mean: MeanMachine;
  let announcing: Timer;
  let answer: readonly Said[];
  beforeAll(async () => {
    fleet = await startFleet({ machines: {} });
    mean = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "mean",
      catalogue: () => offering([{ ...handMadeModel, id: "mean" }]),
      answer: () => answer,
    });
    announcing = clock.every(500, () => mean.announce());
    await until(async () => (await fleet.endpoint.models()).ids.includes("mean"), { what: "the machine to be listed" });
  });
  afterAll(async () => {
    announcing?.cancel();
    await mean?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    answer = inFrames(event("fine"));
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

  test.each([1, 4])("loses %s whole answers that exceed their credit", async (count) => {
    answer = atOnce(limits.wholeCreditBytes * 6);
    const responses = await Promise.all(Array.from({ length: count }, () => ask(false)));
    for (const response of responses) {
      expect(response.status).toBe(502);
      expect(await errorOf(response)).toMatchObject({
        code: "upstream_error",
        message: expect.stringContaining("broke the rules of the wire"),
      });
    }
  });

  test("loses a stream that exceeds the credit that its client leaves", async () => {
    answer = atOnce(limits.streamCreditBytes * 64);
    const response = await ask(true);
    // The client reads nothing until the gateway has given the answer up.
    expect(await outcomeOf(response)).toBe("upstream_error");
    await response.text().catch(() => undefined);
  });

  test.each<[string, ...string[]]>([
    ["whole", event("one"), "data: [DONE]\n\n", event("two")],
    ["in one frame with what comes after it", event("one"), `data: [DONE]\n\n${event("two")}`],
    ["behind no blank", event("one"), "data:[DONE]\n\n", event("two")],
  ])("loses its stream at a [DONE] that comes %s", async (_, ...pieces) => {
    answer = inFrames(...pieces);
    const response = await ask(true);
    const text = await response.text();
    expect(text.startsWith(event("one"))).toBe(true);
    expect(text).not.toContain("[DONE]");
    expect(text).not.toContain("two");
    expect(errorIn(text.trimEnd().split("data: ").at(-1) ?? "").code).toBe("upstream_error");
    expect(await outcomeOf(response)).toBe("upstream_error");
  });

  test("loses its stream at a [DONE] that is split over frames, and its client sees a broken connection", async () => {
    answer = inFrames(event("one"), "data: [D", "ONE]\n\n", event("two"));
    await expect(ask(true).then((response) => response.text())).rejects.toThrow();
  });

  test("passes on a text that merely holds [DONE]", async () => {
    const pieces = [event("data: [DONE]\n\n"), event("one").slice(0, -9), event("one").slice(-9), event("[DONE]")];
    answer = inFrames(...pieces);
    expect(await (await ask(true)).text()).toBe(`${pieces.join("")}data: [DONE]\n\n`);
  });

  test("is asked last after it has done so again and again", async () => {
    answer = inFrames("data: [DONE]\n\n");
    const opened = async (): Promise<boolean> => {
      await (await ask(true)).text();
      const lines = (await fleet.gateways[0]?.logLines()) ?? [];
      return lines.some((line) => line.msg.includes("fails all the time") && line["machine"] === "mean");
    };
    await until(opened, { what: "the breaker to open" });
  });
});
