import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { scriptedText } from "./scripted-request.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const tokens = 60;
const says = `/script tokens=${tokens} delay_ms=20 nonce=abc`;

type Event = Anthropic.RawMessageStreamEvent | OpenAI.Responses.ResponseStreamEvent;

interface Api {
  readonly stream: (endpoint: Endpoint) => PromiseLike<AsyncIterable<Event>>;
  /** The last event of a whole answer, and what the SDK throws for one whose machine is lost. */
  readonly ends: object;
  readonly throws: object;
}

const apis: Readonly<Record<string, Api>> = {
  message: {
    stream({ baseUrl, key: apiKey }) {
      const { messages } = new Anthropic({ baseURL: new URL(baseUrl).origin, apiKey, maxRetries: 0 });
      const asked = { model: "scripted", max_tokens: 1_000, messages: [{ role: "user" as const, content: says }] };
      return messages.create({ ...asked, stream: true });
    },
    ends: { type: "message_stop" },
    throws: { error: { error: { type: "api_error", code: "agent_disconnected" } } },
  },
  response: {
    stream({ baseUrl: baseURL, key: apiKey }) {
      const { responses } = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
      return responses.create({ model: "scripted", input: says, stream: true });
    },
    ends: { type: "response.completed", sequence_number: expect.any(Number), response: { status: "completed" } },
    throws: { code: "agent_disconnected", type: "server_error" },
  },
};

function textOf(events: readonly Event[]): string {
  return events
    .map((event) => {
      if (event.type === "response.output_text.delta") return event.delta;
      return event.type === "content_block_delta" && event.delta.type === "text_delta" ? event.delta.text : "";
    })
    .join("");
}

describe.skipIf(lentOnly("nats", "redis"))("the stream of an official SDK", () => {
  let fleet: Fleet;
  beforeAll(async () => void (fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } })));
  afterAll(() => fleet[Symbol.asyncDispose]());

  /** A stream that has begun: what came so far, and what its end throws. */
  async function begun({ stream }: Api): Promise<{ events: Event[]; over: Promise<unknown> }> {
    await fleet.endpoint.untilListed("scripted");
    const events: Event[] = [];
    const answer = await stream(fleet.endpoint);
    const over = (async () => {
      for await (const event of answer) events.push(event);
    })().catch((error: unknown) => error);
    await until(() => textOf(events).includes("abc-3 "), { what: "the first tokens" });
    return { events, over };
  }

  test.each(Object.entries(apis))(
    "the stream of an official SDK of a %s is whole when NATS is killed and comes back",
    async (_, api) => {
      const { events, over } = await begun(api);
      await fleet.nats.kill();
      await fleet.nats.restart();
      expect(await over).toBeUndefined();
      expect(events.at(-1)).toMatchObject(api.ends);
      expect(textOf(events)).toBe(scriptedText("abc", tokens));
      const numbers = events.flatMap((event) => ("sequence_number" in event ? [event.sequence_number] : []));
      expect(numbers).toEqual(numbers.map((__, place) => place));
    },
  );

  test.each(Object.entries(apis))(
    "the stream of an official SDK of a %s ends in an error that is thrown when its machine is killed",
    async (_, api) => {
      const { events, over } = await begun(api);
      await fleet.agent("attic").kill();
      expect(await over).toMatchObject(api.throws);
      expect(events.at(-1)?.type).toMatch(/delta$/);
      expect(scriptedText("abc", tokens).startsWith(textOf(events))).toBe(true);
      await fleet.startAgent("attic");
    },
  );
});
