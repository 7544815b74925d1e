import { beforeEach, expect, onTestFinished, test } from "vitest";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { createLog } from "#shared/process/log.ts";
import { Fault, faultCodes, faultEntry, isFaultCode } from "#shared/fault/fault.ts";
import { createServer } from "../../services/gateway/server.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { openTraces } from "../../services/gateway/traces/open-traces.ts";
import { SpanQueue, spansWaitingMax } from "../../services/gateway/traces/span-queue.ts";
import { followedPerSecond } from "../../services/gateway/traces/trace-requests.ts";
import { freePort } from "../harness/free-port.ts";
import { OtlpReceiver } from "../harness/otlp-receiver.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { booksOfATest, requestFor } from "../unit/gateway/request-of-a-test.ts";
import { offerOf } from "../unit/gateway/offers.ts";
import { key } from "../unit/gateway/routes-and-keys.ts";

const codes = Object.keys(faultCodes).filter(isFaultCode);
const log = createLog({ level: "silent", name: "test" });
const clock = new TurnableClock();

let receiver: OtlpReceiver;
/** Sends a request that ends in a fault, before its key is proven or after. */
let ask: (path: string, headers?: Record<string, string>) => Promise<unknown>;
/** Resolves with what the collector has once the last span was sent. */
let stop: () => Promise<void>;

beforeEach(async () => {
  receiver = await OtlpReceiver.start();
  const config = gatewayConfig({
    OTEL_EXPORTER_OTLP_HEADERS: "api-key=of%20the%20collector",
    OTEL_SERVICE_NAME: "a site",
    OTEL_TRACES_SAMPLER: "parentbased_always_on",
  });
  const meter = { spansSent: () => undefined, spansDropped: () => undefined };
  const opened = openTraces(config, { endpoint: receiver.url, gateway: "gateway", clock, log, meter });
  const { beginTrace } = opened;
  const server = createServer({ log, bodyBytesMax: 1_024, bodyLimitName: "test", clock, beginTrace });
  onTestFinished(() => server.close());
  server.get<{ Params: { code: string } }>("/unproven/:code", async ({ params: { code } }) => {
    throw new Fault(isFaultCode(code) ? code : "internal_error", { message: "It failed." });
  });
  server.get<{ Params: { code: string } }>("/proven/:code", async (incoming) => {
    const { code } = incoming.params;
    const { settlements } = booksOfATest(clock);
    const { trace } = incoming.state;
    const request = requestFor(key(), { clock, settlements, trace, headers: incoming.headers });
    incoming.state.reporter = request;
    request.endedIn(isFaultCode(code) ? code : "ok");
    request.close(isFaultCode(code) ? faultEntry(code).status : 200);
    return "";
  });
  server.get("/answered", async (incoming) => {
    const { trace } = incoming.state;
    const request = requestFor(key(), { clock, settlements: booksOfATest(clock).settlements, trace });
    incoming.state.reporter = request;
    trace.parentOf({});
    request.asksFor({ model: "llama3", streamed: true });
    const { answer } = request;
    clock.advance(10);
    answer.onOffer(offerOf("attic"));
    clock.advance(20);
    answer.on({ kind: "fault", fault: new Fault("server_is_overloaded", { message: "It is full." }), taken: false });
    clock.advance(30);
    answer.onOffer(offerOf("cellar"));
    answer.on({ kind: "accepted" });
    clock.advance(1_000);
    answer.loadWaitMs = 200;
    answer.endFrame = {
      finishReason: "tool_calls",
      usage: null,
      timings: { queuedMs: 300, firstTokenMs: 700, totalMs: 1_000 },
    };
    await request.ended(200);
    return "";
  });
  ask = (path, headers = {}) => server.inject({ url: path, headers });
  stop = opened.stop;
});

test.each(["proven", "unproven"])(
  "each fault of the fault table is one span that ends with its code, for a key that is %s",
  async (when) => {
    for (const code of codes) {
      await ask(`/${when}/${code}`);
      clock.advance(100);
    }
    await stop();
    expect(receiver.spans.map(({ attributes }) => attributes["error.type"])).toEqual(codes);
    for (const span of receiver.spans) {
      const code = codes.find((each) => each === span.attributes["error.type"]) ?? "internal_error";
      expect(span).toMatchObject({ name: `GET /${when}/:code`, kind: 2, parentId: "", links: [] });
      expect(span).toMatchObject({ schemaUrl: "https://opentelemetry.io/schemas/gen-ai/0.1.0" });
      expect([code, span.hasFailed]).toEqual([code, faultEntry(code).status >= 500]);
      expect(span.endedAt).toBeGreaterThanOrEqual(span.startedAt);
      expect(span.service).toMatchObject({ "service.name": "a site", "service.instance.id": "gateway" });
    }
    expect(receiver.calls[0]?.headers).toMatchObject({ "api-key": "of the collector" });
  },
);

const ofClient = (trace: number, flags = "01") => ({
  traceparent: `00-${String(trace).padStart(32, "0")}-00f067aa0ba902b7-${flags}`,
});

test("an answer has a span for each offer, and below the last one what its machine did by its own times", async () => {
  const beganAt = BigInt(clock.wall());
  await ask("/answered");
  await stop();
  const told = receiver.spans.map(({ name, startedAt, endedAt, parentId, attributes, hasFailed }) => {
    const parent = receiver.spans.find(({ spanId }) => spanId === parentId)?.attributes["trunkline.machine"];
    const [from, to] = [startedAt, endedAt].map((at) => Number(at / 1_000_000n - beganAt));
    return [name, from, to, attributes["error.type"] ?? parent, hasFailed];
  });
  expect(told).toEqual([
    ["admit and choose", 0, 10, "cellar", false],
    ["offer", 10, 30, "server_is_overloaded", false],
    ["offer", 60, 1_060, "cellar", false],
    ["load", 60, 260, "cellar", false],
    ["wait", 260, 360, "cellar", false],
    ["prefill", 360, 760, "cellar", false],
    ["decode", 760, 1_060, "cellar", false],
    ["GET /answered", 0, 1_060, undefined, false],
  ]);
  expect(receiver.spans.at(-1)?.attributes["gen_ai.response.finish_reasons"]).toEqual(["tool_calls"]);
});

test("a client's trace is gone on with for a proven key, 50 times a second, and is only linked from then on", async () => {
  for (let trace = 1; trace <= followedPerSecond + 2; trace += 1) await ask("/proven/ok", ofClient(trace));
  clock.advance(1_000);
  await ask("/proven/ok", ofClient(99));
  await stop();
  const followed = receiver.spans.filter(({ parentId }) => parentId === "00f067aa0ba902b7");
  const linked = receiver.spans.filter(({ links }) => links.length > 0);
  expect(followed.map(({ traceId }) => Number(traceId))).toEqual([
    ...Array.from({ length: followedPerSecond }, (_, index) => index + 1),
    99,
  ]);
  expect(linked.map(({ links }) => Number(links[0]?.traceId))).toEqual([51, 52]);
  expect(linked.map(({ parentId }) => parentId)).toEqual(["", ""]);
});

test("a client's trace is only linked without a proven key", async () => {
  await ask("/unproven/key_invalid", ofClient(7));
  await stop();
  expect(receiver.spans.map(({ links, parentId }) => [Number(links[0]?.traceId), parentId])).toEqual([[7, ""]]);
});

test("a client that does not trace its request has no span of it, and a traceparent that is none is ignored", async () => {
  await ask("/proven/ok", ofClient(1, "00"));
  const broken = [
    "",
    "garbage",
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    `ff-${"a".repeat(32)}-00f067aa0ba902b7-01`,
  ];
  for (const traceparent of broken) await ask("/proven/ok", { traceparent });
  await stop();
  expect(receiver.spans.map(({ parentId, links }) => [parentId, links])).toEqual(broken.map(() => ["", []]));
});

test("spans beyond those that may wait for a collector are dropped and counted", async () => {
  const url = new URL(`http://127.0.0.1:${await freePort()}`);
  let [dropped, sent] = [0, 0];
  const meter = {
    spansSent: (count: number) => void (sent += count),
    spansDropped: (count: number) => void (dropped += count),
  };
  const queue = new SpanQueue(url, [], { clock, log, meter });
  const tracer = new TracerProvider({ spanProcessors: [queue] }).getTracer("test");
  for (let span = 0; span < spansWaitingMax + 3; span += 1) tracer.startSpan("a request", { kind: 1 }).end();
  expect(dropped).toBe(3);
  await queue.shutdown();
  expect([dropped, sent]).toEqual([spansWaitingMax + 3, 0]);
});
