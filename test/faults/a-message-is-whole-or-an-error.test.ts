import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { scriptedText } from "./scripted-request.ts";

type Event = Anthropic.RawMessageStreamEvent;

const tokens = 60;

describe.skipIf(lentOnly("nats", "redis"))("the stream of a message", () => {
  let fleet: Fleet;
  beforeEach(async () => void (fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } })));
  afterEach(() => fleet[Symbol.asyncDispose]());

  /** One that has begun, as Anthropic's SDK reads it: what came so far, and what its end throws. */
  async function begun(): Promise<{ events: Event[]; over: Promise<unknown> }> {
    const { baseUrl, key: apiKey } = fleet.endpoint;
    const { messages } = new Anthropic({ baseURL: new URL(baseUrl).origin, apiKey, maxRetries: 0 });
    const content = `/script tokens=${tokens} delay_ms=20 nonce=abc`;
    const events: Event[] = [];
    const asked = { model: "scripted", max_tokens: 1_000, messages: [{ role: "user" as const, content }] };
    const stream = await messages.create({ ...asked, stream: true });
    const over = (async () => {
      for await (const event of stream) events.push(event);
    })().catch((error: unknown) => error);
    await until(() => textOf(events).includes("abc-3 "), { what: "the first tokens" });
    return { events, over };
  }

  test("is whole, with no piece missing or twice, when NATS is killed and comes back", async () => {
    const { events, over } = await begun();
    await fleet.nats.kill();
    await fleet.nats.restart();
    expect(await over).toBeUndefined();
    expect(events.at(-1)?.type).toBe("message_stop");
    expect(textOf(events)).toBe(scriptedText("abc", tokens));
  });

  test("ends in an error that is thrown, and in no message_stop, when its machine is killed", async () => {
    const { events, over } = await begun();
    await fleet.agent("attic").kill();
    const error = await over;
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ error: { error: { type: "api_error", code: "agent_disconnected" } } });
    expect(events.at(-1)?.type).toBe("content_block_delta");
    expect(scriptedText("abc", tokens).startsWith(textOf(events))).toBe(true);
  });
});

function textOf(events: readonly Event[]): string {
  return events
    .map((event) => (event.type === "content_block_delta" && event.delta.type === "text_delta" ? event.delta.text : ""))
    .join("");
}
