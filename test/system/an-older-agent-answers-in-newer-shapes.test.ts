import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { errorIn, errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel as model, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const events: AnswerEvent[] = [
  { kind: "text", text: "Once " },
  { kind: "text", text: "upon é" },
  { kind: "finish", reason: "length" },
  { kind: "usage", promptTokens: 2, completionTokens: 3 },
];
const lines = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
/** In the middle of the last letter. */
const cut = lines.indexOf("é") + 1;

describe.skipIf(lentOnly("nats", "redis"))("an agent that knows only events", () => {
  let fleet: Fleet;
  let agent: HandMadeAgent;
  let asked: string[];
  let cancelled: boolean;
  let answer: Uint8Array[];
  beforeAll(async () => {
    fleet = await startFleet({ machines: {} });
    const { url: natsUrl } = fleet.nats;
    agent = await HandMadeAgent.start({
      natsUrl,
      machine: "attic",
      model,
      shapes: ["events"],
      onJob({ head, say }: HandMadeJob) {
        asked.push(`${head.kind} as ${head.shape}`);
        for (const [place, bytes] of answer.entries()) say("data", bytes, place + 1);
        say("end", handMadeEnd, answer.length + 1);
      },
      onControl: (told) => {
        if (told.kind === "cancel") cancelled = true;
      },
    });
    const listed = async (): Promise<boolean> => (await fleet.endpoint.models()).ids.includes(model.id);
    await until(listed, { what: "the hand-made model to be listed" });
  });
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    asked = [];
    cancelled = false;
    answer = [lines.subarray(0, cut), lines.subarray(cut)];
  });

  const ask = (stream: boolean): Promise<Response> => fleet.endpoint.chat({ model: model.id, says: "hi", stream });

  test("is asked for them, and its client gets a whole answer in the shape that it reads", async () => {
    expect(await (await ask(false)).json()).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion",
      model: model.id,
      choices: [{ message: { role: "assistant", content: "Once upon é" }, finish_reason: "length" }],
      usage: { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 },
    });
    expect(asked).toEqual(["chat as events"]);
  });

  test("is asked for them, and its client gets a stream as they come", async () => {
    const told = (await (await ask(true)).text()).split("\n\n").filter(Boolean);
    expect(told.at(-1)).toBe("data: [DONE]");
    const chunks = told.slice(0, -1).map((event): unknown => JSON.parse(event.slice("data: ".length)));
    expect(chunks).toMatchObject([
      { choices: [{ delta: { role: "assistant" } }] },
      { choices: [{ delta: { content: "Once " } }] },
      { choices: [{ delta: { content: "upon é" } }] },
      { choices: [{ delta: {}, finish_reason: "length" }] },
    ]);
  });

  test("and says what is no event is told to stop, and its client hears of it, before or in the stream", async () => {
    answer = [Buffer.from("data: hello\n")];
    const refused = await ask(true);
    expect(refused.status).toBe(502);
    expect(await errorOf(refused)).toMatchObject({ code: "upstream_error" });
    await until(() => cancelled, { what: "the machine to be told" });

    for (const broken of [lines.subarray(0, cut), lines.subarray(0, lines.indexOf("\n") + 1), Buffer.from("\n")]) {
      answer = [broken];
      expect((await ask(false)).status).toBe(502);
    }

    answer = [lines.subarray(0, cut), Buffer.from("\n{}\n")];
    const told = (await (await ask(true)).text()).split("\n\n").filter(Boolean);
    expect(errorIn(told.at(-1)?.slice("data: ".length) ?? "")).toMatchObject({ code: "upstream_error" });
    expect(told).not.toContain("data: [DONE]");
  });
});
