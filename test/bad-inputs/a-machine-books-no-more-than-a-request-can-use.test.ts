import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connectNats } from "#shared/broker/nats-broker.ts";
import type { NewKey } from "#shared/records/issue-key.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { beatPayload, decodeJson } from "#shared/protocol/frame-payload.ts";
import { decodeFrame } from "#shared/protocol/frame.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import { estimateTexts } from "../../services/gateway/limits/token-estimates.ts";
import { type Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering, type MeanJob, type Said } from "./mean-machine.ts";
import { contentOf, saying } from "../harness/answer-payload.ts";

const answered: Said = ["data", saying("fine"), 1];
const hugeUsage = { promptTokens: 2e9, completionTokens: 2e9 };
const ending = (usage: object): readonly Said[] => [answered, ["end", { ...handMadeEnd, usage }, 2]];

describe.skipIf(lentOnly("nats", "redis"))("a machine that lies about tokens", () => {
  let fleet: Fleet;
  let operator: Operator;
  let mean: MeanMachine;
  let answer: (job: MeanJob) => readonly Said[];
  beforeAll(async () => {
    fleet = await startFleet({ machines: { honest: { models: ["scripted"] } } });
    operator = await Operator.on({ redisUrl: fleet.redis.url });
    mean = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "mean",
      hears: true,
      catalogue: () => offering([{ ...handMadeModel, id: "mean" }]),
      answer: (job) => answer(job),
    });
    await fleet.endpoint.untilListed("mean");
  });
  afterAll(async () => {
    await mean?.[Symbol.asyncDispose]();
    await operator?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    answer = () => ending(hugeUsage);
  });

  const issue = async (terms: Partial<NewKey> = {}): Promise<{ id: KeyId; endpoint: Endpoint }> => {
    const { token, record } = await operator.issue(terms);
    return { id: record.id, endpoint: fleet.endpoint.withKey(token.reveal()) };
  };
  const counted = (id: KeyId, requests = 1): Promise<UsageRow> =>
    until(
      async () => {
        const usage = await operator.usageSum(id);
        return usage?.requests === requests && usage;
      },
      { what: "the request to be counted" },
    );
  const notBelieved = async (): Promise<number> => {
    const metrics = await MetricsText.scrape(fleet.gateway.operationsUrl);
    return metrics.value("trunkline_usage_not_believed_total", { machine: "mean" });
  };

  test("a machine that reports a trillion tokens does not empty the monthly budget of a key", async () => {
    const budget = { tokens: 1_000_000, per: "month" } as const;
    const { id, endpoint } = await issue({ limits: { budget } });
    const response = await endpoint.chat({ model: "mean", says: "hi", max_tokens: 50 });
    expect([response.status, await contentOf(response)]).toEqual([200, "fine"]);
    const { promptTokens, completionTokens } = await counted(id);
    expect(completionTokens).toBe(50);
    // One message of two letters, and the fields of its JSON.
    expect(promptTokens).toBeGreaterThan(256);
    expect(promptTokens).toBeLessThan(256 + 200);
    expect((await endpoint.chat({ model: "mean", says: "hi", max_tokens: 50 })).status).toBe(200);
  });

  test("usage that was not believed is in the log and in a metric, and an honest report is in neither", async () => {
    const before = await notBelieved();
    const { id, endpoint } = await issue();
    const lying = await endpoint.chat({ model: "mean", says: "hi", max_tokens: 50 });
    await lying.text();
    answer = () => ending({ promptTokens: 9, completionTokens: 1 });
    await (await endpoint.chat({ model: "mean", says: "hi", max_tokens: 50 })).text();
    await counted(id, 2);
    expect((await notBelieved()) - before).toBe(1);
    const lines = (await fleet.gateways[0]?.logLines()) ?? [];
    const told = lines.filter((line) => "reported" in line && line["key"] === id);
    expect(told).toEqual([
      expect.objectContaining({
        machine: "mean",
        request: lying.headers.get("x-request-id"),
        reported: hugeUsage,
        counted: { promptTokens: expect.any(Number), completionTokens: 50 },
      }),
    ]);
  });

  describe("whose client leaves a whole answer early", () => {
    /** Leaves a whole answer when `seen` has been observed. */
    async function leave(
      { id, endpoint }: { id: KeyId; endpoint: Endpoint },
      fields: { model: string; says: string; max_tokens?: number },
      seen: () => Promise<unknown>,
    ): Promise<UsageRow> {
      const leaving = new AbortController();
      const left = endpoint.chat(fields, leaving.signal).catch(() => "left");
      await seen();
      leaving.abort();
      expect(await left).toBe("left");
      return counted(id);
    }
    const begun = async (count: number): Promise<MeanJob> =>
      until(() => mean.jobs[count], { what: "the machine to have the job" });
    /** Sends a beat with this progress and a row of a job that does not exist, which its gateway cancels once it has read the beat. */
    const beat = async ({ reply, head }: MeanJob, [state, progress]: readonly [string, number]): Promise<void> => {
      const cancels = (): number => mean.heard.filter((subject) => subject.endsWith(".control")).length;
      const before = cancels();
      const stray = ["j".repeat(22), "running", 0, 0, 0, 0];
      const rows = [[head.id, state, 0, progress, 0, 0], ...Array.from({ length: 3 }, () => stray)];
      const beats = reply.replace(/[^.]+$/, "beats");
      mean.say(beats, ["beat", { epoch: mean.epoch, rows }]);
      await until(() => cancels() >= before + 3, { what: "the gateway to have read the beat" });
    };

    test("a whole answer that is left early is booked with its prompt and with the tokens that the beats told of", async () => {
      answer = () => [];
      const jobs = mean.jobs.length;
      const usage = await leave(await issue(), { model: "mean", says: "x".repeat(400) }, async () => {
        await beat(await begun(jobs), ["running", 37]);
      });
      expect(usage).toMatchObject({
        failed: 1,
        promptTokens: estimateTexts(["x".repeat(400)]),
        completionTokens: 37,
        answered: 0,
      });
    });

    test("a whole answer that is left early is booked with the tokens that a real agent had made of it", async () => {
      const says = "/script tokens=10 stall_at=5";
      const broker = await connectNats({
        url: fleet.nats.url,
        name: "test",
        clock,
        log: createLog({ level: "silent", name: "test" }),
      });
      let beats = 0;
      broker.subscribe("tl1.reply.*.honest.beats", ({ data }) => {
        const decoded = decodeFrame(data);
        if (decoded.outcome !== "frame") return;
        if (decodeJson(beatPayload, decoded.frame.payload)?.rows.some((row) => row[3] >= 5)) beats += 1;
      });
      await broker.flush();
      const usage = await leave(await issue(), { model: "scripted", says }, () =>
        until(() => beats >= 2, { what: "two beats that tell of five tokens" }),
      );
      await broker.close();
      expect(usage).toMatchObject({ promptTokens: estimateTexts([says]), completionTokens: 5 });
    });
  });
});
