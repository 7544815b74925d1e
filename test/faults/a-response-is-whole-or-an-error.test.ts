import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { scriptedText } from "./scripted-request.ts";

type Event = OpenAI.Responses.ResponseStreamEvent;

const tokens = 60;

describe.skipIf(lentOnly("nats", "redis"))("the stream of a response", () => {
  let fleet: Fleet;
  beforeEach(async () => void (fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } })));
  afterEach(() => fleet[Symbol.asyncDispose]());

  /** One that has begun, as the official client reads it: what came so far, and what its end throws. */
  async function begun(): Promise<{ events: Event[]; over: Promise<unknown> }> {
    const { baseUrl: baseURL, key: apiKey } = fleet.endpoint;
    const { responses } = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
    const input = `/script tokens=${tokens} delay_ms=20 nonce=abc`;
    const events: Event[] = [];
    const stream = await responses.create({ model: "scripted", input, stream: true });
    const over = (async () => {
      for await (const event of stream) events.push(event);
    })().catch((error: unknown) => error);
    await until(() => textOf(events).includes("abc-3 "), { what: "the first tokens" });
    return { events, over };
  }

  test("is whole, with no event missing or twice, when NATS is killed and comes back", async () => {
    const { events, over } = await begun();
    await fleet.nats.kill();
    await fleet.nats.restart();
    expect(await over).toBeUndefined();
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, place) => place));
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { status: "completed" } });
    expect(textOf(events)).toBe(scriptedText("abc", tokens));
  });

  test("ends in an error that is thrown when its machine is killed", async () => {
    const { events, over } = await begun();
    await fleet.agent("attic").kill();
    expect(await over).toMatchObject({ code: "agent_disconnected", type: "server_error" });
    expect(events.at(-1)?.type).toBe("response.output_text.delta");
    expect(scriptedText("abc", tokens).startsWith(textOf(events))).toBe(true);
  });
});

function textOf(events: readonly Event[]): string {
  return events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
}
