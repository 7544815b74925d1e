import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { modelsPerMachineMax } from "#shared/protocol/model.ts";
import { replySubject } from "#shared/protocol/subjects.ts";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering, type MeanJob, type Said } from "./mean-machine.ts";
import { contentOf, saying } from "../harness/answer-payload.ts";

const named = (id: string): object => ({ ...handMadeModel, id });
const fine: readonly Said[] = [
  ["data", saying("fine"), 1],
  ["end", handMadeEnd, 2],
];
/** With this usage, as it stands in the JSON of a machine. */
const ending = (usage: string): readonly Said[] => [
  ["data", saying("fine"), 1],
  ["end", Buffer.from(JSON.stringify({ ...handMadeEnd, usage: 0 }).replace('"usage":0', `"usage":${usage}`)), 2],
];

describe.skipIf(lentOnly("nats", "redis"))("a machine that lies", () => {
  let fleet: Fleet;
  let mean: MeanMachine;
  let catalogue: readonly Said[];
  let answer: (job: MeanJob) => readonly Said[];
  beforeAll(async () => {
    catalogue = offering([named("mean")]);
    fleet = await startFleet({ machines: { honest: { models: ["scripted"] } } });
    mean = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "mean",
      hears: true,
      catalogue: () => catalogue,
      answer: (job) => answer(job),
    });
    await until(() => lists("mean"), { what: "the machine to be listed" });
  });
  afterAll(async () => {
    await mean?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    catalogue = offering([named("mean")]);
    answer = () => fine;
  });

  const lists = async (id: string): Promise<boolean> => (await fleet.endpoint.models()).ids.includes(id);
  const honestly = (): Promise<string> =>
    fleet.endpoint.answer({ model: "scripted", says: "/script tokens=2 nonce=x" });
  /** The models that are listed once the machine was asked for this catalogue. */
  const listAfter = async (offered: readonly Said[]) => {
    catalogue = offered;
    const before = mean.asked;
    // Callers in quick succession share one round of questions.
    const round = async () => (await fleet.endpoint.models(), mean.asked > before) && (await fleet.endpoint.models());
    return until(round, { what: "the machine to be asked" });
  };
  const ask = (stream = false): Promise<Response> => fleet.endpoint.chat({ model: "mean", says: "hi", stream });

  test.each([
    ["10,000 models", () => Array.from({ length: 10_000 }, (_, place) => named(`made-up-${place}`))],
    [
      "one model too many",
      () => Array.from({ length: modelsPerMachineMax + 1 }, (_, place) => named(`made-up-${place}`)),
    ],
    ["more than 2 MiB", () => [{ ...named("made-up-0"), x: "x".repeat(3_000_000) }]],
  ])("a catalogue of %s is not believed, and the others are listed as before", async (_, models) => {
    const { status, ids, unanswered } = await listAfter(offering(models()));
    expect([status, ids, unanswered]).toEqual([200, ["scripted"], "mean"]);
    expect((await fleet.endpoint.chat({ model: "made-up-0", says: "hi" })).status).toBe(404);
    expect(await honestly()).toBe("x-0 x-1 ");
  });

  test.each([
    ["a name of 50 KB", { id: "n".repeat(50_000) }],
    ["a name that is half a character", { id: "\ud800" }],
    ["a name that is a number", { id: 7 }],
    ["a window below nothing", { context_window: -1 }],
  ])("a machine that lies about %s of a model has that model left out, and its others are listed", async (_, lie) => {
    const { status, ids, unanswered } = await listAfter(offering([named("mean"), { ...handMadeModel, ...lie }]));
    expect([status, ids, unanswered]).toEqual([200, ["mean", "scripted"], null]);
    expect(await contentOf(await ask())).toBe("fine");
  });

  test("frames of jobs that a machine does not have, has ended or never had reach nobody", async () => {
    const first = await ask();
    expect(await contentOf(first)).toBe("fine");
    const ended = mean.jobs.at(-1);
    const stream = await fleet.endpoint.stream({ model: "scripted", says: "/script tokens=30 delay_ms=20 nonce=own" });
    const [, , gateway = ""] = ended?.reply.split(".") ?? [];
    const honest = mean.heard.findLast((subject) => subject.startsWith(`tl1.reply.${gateway}.honest.`)) ?? "";
    const [, , , , job = ""] = honest.split(".");
    for (const subject of [
      ended?.reply ?? "",
      replySubject({ gateway, machine: "mean", job: "j".repeat(22) }),
      replySubject({ gateway, machine: "mean", job }),
      `tl1.reply.${gateway}.mean.beats`,
      `tl1.reply.${gateway}.mean.a.b.c`,
    ]) {
      for (const said of [...ending("null"), ["fault", { code: "internal_error", message: "canary" }, 1] as Said]) {
        mean.say(subject, said);
      }
    }
    await mean.flush();
    await stream.over;
    expect(stream.text).toBe(Array.from({ length: 30 }, (_, place) => `own-${place} `).join(""));
    expect(stream.events.at(-1)).toBe("[DONE]");
    expect(await contentOf(await ask())).toBe("fine");
  });

  test("a machine that lies as often as it can is asked for its models seldom, and the others are served meanwhile", async () => {
    const before = mean.asked;
    const beats = 10_000;
    for (let beat = 0; beat < beats; beat += 1) mean.announce({ catalogueDigest: `d${beat}` });
    await mean.flush();
    expect(await honestly()).toBe("x-0 x-1 ");
    expect(await contentOf(await ask())).toBe("fine");
    expect(mean.asked - before).toBeLessThan(beats / 100);
  });

  test("a machine that lies about who it is is not heard", async () => {
    for (const lies of [
      { machine: "honest" },
      { epoch: "x" },
      { slots: -1 },
      { state: "king" },
      { scale: 7 },
      { wire: "2" },
    ]) {
      mean.announce({ ...lies, runtime: "canary" });
    }
    await mean.flush();
    expect(await honestly()).toBe("x-0 x-1 ");
    expect(await contentOf(await ask())).toBe("fine");
  });

  test.each(["-1", "1.5", "1e12", "1e400", "null", '"many"'])(
    "an answer of %s tokens has not ended in success",
    async (tokens) => {
      answer = () => ending(`{"promptTokens":1,"completionTokens":${tokens}}`);
      const response = await ask();
      expect(response.status).toBe(502);
      expect(await errorOf(response)).toMatchObject({ code: "agent_disconnected" });
    },
  );

  test.each([false, true])(
    "a machine that lies with headers of its own has none of them sent on, in a stream: %s",
    async (stream) => {
      answer = () => fine;
      const response = await ask(stream);
      await response.text();
      expect(response.status).toBe(200);
      expect([...response.headers].flat().filter((text) => text.includes("canary") || text === "set-cookie")).toEqual(
        [],
      );
    },
  );
});

test.skipIf(lentOnly("nats", "redis"))(
  "an answer to one client never reaches another, however many ask at once",
  async () => {
    await using fleet = await startFleet({
      gateways: 2,
      machines: { one: { models: ["scripted"] }, two: { models: ["scripted"] } },
    });
    const texts = await Promise.all(
      Array.from({ length: 400 }, async (_, place) => {
        const endpoint = fleet.endpoints[place % 2] ?? fleet.endpoint;
        const fields = { model: "scripted", says: `/script tokens=3 nonce=own${place}` };
        if (place % 3 > 0) return endpoint.answer(fields);
        const stream = await endpoint.stream(fields);
        await stream.over;
        return stream.text;
      }),
    );
    expect(texts).toEqual(texts.map((_, place) => [0, 1, 2].map((token) => `own${place}-${token} `).join("")));
  },
);
