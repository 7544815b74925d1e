import type { ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { openRequests } from "#shared/requests/request-records.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { freePort } from "../harness/free-port.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { OtlpReceiver, type ReadSpan } from "../harness/otlp-receiver.ts";
import { gatewayBefore, serverOfTest } from "../harness/server-of-test.ts";
import { until } from "../harness/until.ts";

const all = (url: string) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_TRACES_SAMPLER: "parentbased_always_on",
});
const ofClient = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" };
const chat = { model: "Qwen/Qwen3-8B", stream: true, messages: [{ role: "user", content: "canary of the prompt" }] };

async function demonstration(env: Record<string, string>) {
  const gateway = await startGatewayInProcess({ logLevel: "warn", env });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { gateway, ...(await gateway.issue()) };
}

const roots = ({ spans }: OtlpReceiver): readonly ReadSpan[] => spans.filter(({ kind }) => kind === 2);

test("one trace leads from the client's span over the request, its offer and its machine to the engine, without prompt, answer and key", async () => {
  await using engine = await FakeVllm.start();
  engine.onChat = async (answer) => {
    await pause(20);
    for (const word of ["canary ", "of the ", "answer"]) {
      answer.say(word);
      await pause(10);
    }
    answer.done();
  };
  const receiver = await OtlpReceiver.start();
  const gateway = await gatewayBefore("vllm", engine, all(receiver.url));
  const { endpoint, record } = await gateway.issue();
  const answer = await endpoint.post("/chat/completions", chat, { headers: ofClient });
  expect(await answer.text()).toContain("canary ");
  await gateway.stop(1_000);

  const [root] = roots(receiver);
  if (root === undefined) throw new Error("no span of the request came");
  const of = (name: string): ReadSpan => receiver.named(name)[0] ?? root;
  const [offer, prefill, decode] = [of("offer"), of("prefill"), of("decode")];
  // The machine may let a job wait for a millisecond.
  const names = receiver.spans.map(({ name }) => name).filter((name) => name !== "wait");
  expect(names.toSorted()).toEqual(["admit and choose", "chat Qwen/Qwen3-8B", "decode", "offer", "prefill"]);
  expect(new Set(receiver.spans.map(({ traceId }) => traceId))).toEqual(new Set(["4bf92f3577b34da6a3ce929d0e0e4736"]));
  expect([root.parentId, of("admit and choose").parentId, offer.parentId, prefill.parentId, decode.parentId]).toEqual([
    "00f067aa0ba902b7",
    root.spanId,
    root.spanId,
    offer.spanId,
    offer.spanId,
  ]);
  const tokens = Number(root.attributes["gen_ai.usage.output_tokens"]);
  expect(tokens).toBeGreaterThan(0);
  expect(root.attributes).toEqual({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "trunkline",
    "gen_ai.request.model": "Qwen/Qwen3-8B",
    "gen_ai.request.stream": true,
    "gen_ai.response.model": "Qwen/Qwen3-8B",
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.response.time_to_first_chunk": expect.any(Number),
    "gen_ai.usage.input_tokens": expect.any(Number),
    "gen_ai.usage.output_tokens": tokens,
    "http.request.method": "POST",
    "http.response.status_code": 200,
    "http.route": "/v1/chat/completions",
    "trunkline.key": record.id,
    "trunkline.machine": expect.any(String),
    "trunkline.request": answer.headers.get("x-request-id"),
  });
  expect(decode.endedAt - decode.startedAt).toBeGreaterThanOrEqual(10_000_000n);
  for (const [inner, outer] of [
    [prefill, offer],
    [decode, offer],
    [offer, root],
  ] as const)
    expect([inner.name, inner.endedAt <= outer.endedAt + 1_000_000n]).toEqual([inner.name, true]);

  const asked = engine.requests.findLast(({ path }) => path === "/v1/chat/completions");
  expect(asked?.headers["traceparent"]).toBe(`00-${root.traceId}-${root.spanId}-01`);
  const sent = Buffer.concat(receiver.calls.map(({ body }) => body)).toString("latin1");
  for (const secret of ["canary", endpoint.key]) expect(sent).not.toContain(secret);
});

test("the record of a traced request has the id of its trace", async () => {
  const receiver = await OtlpReceiver.start();
  const { gateway, endpoint } = await demonstration(all(receiver.url));
  const answer = await endpoint.post("/chat/completions", { ...chat, model: "scripted" }, { headers: ofClient });
  const id = answer.headers.get("x-request-id") ?? "";
  await answer.text();
  const requests = openRequests(gateway.store.state);
  const record = await until(() => requests.get(id), { what: "the record of the request" });
  expect(record).toMatchObject({ trace: "4bf92f3577b34da6a3ce929d0e0e4736" });
});

test("each request is one span however it ends: refused, left, broken off, made once and asked for again", async () => {
  const receiver = await OtlpReceiver.start();
  const { gateway, endpoint } = await demonstration(all(receiver.url));
  const refused = [
    await endpoint.withKey("nothing").chat({ model: "scripted", says: "Hello!" }),
    await endpoint.chat({ model: "an invented name", says: "Hello!" }),
    await endpoint.post("/chat/completions", { model: "scripted", messages: 1 }),
    await endpoint.get("/nowhere"),
  ];
  expect(refused.map(({ status }) => status)).toEqual([401, 404, 400, 404]);
  await Promise.all(refused.map((each) => each.text()));
  const broken = await endpoint.stream({ model: "scripted", says: "/script tokens=9 delay_ms=5 fail_at=3" });
  await broken.over;
  const leaving = new AbortController();
  const left = await endpoint.stream({ model: "scripted", says: "/script tokens=900 delay_ms=5" }, leaving.signal);
  await until(() => left.events.length > 1, { what: "the first piece" });
  leaving.abort();
  for (let time = 0; time < 2; time += 1) {
    const body = { model: "scripted", messages: [{ role: "user", content: "/script tokens=3" }] };
    await (await endpoint.post("/chat/completions", body, { headers: { "idempotency-key": "once" } })).text();
  }
  await until(() => gateway.stop(2_000).then(() => roots(receiver).length === 8), { what: "eight spans" });
  const told = roots(receiver).map(({ name, attributes }) => [name, attributes["error.type"] ?? "ok"].join(": "));
  expect(told.toSorted()).toEqual([
    "GET: unknown_url",
    "chat scripted: client_closed",
    "chat scripted: ok",
    "chat scripted: ok",
    "chat scripted: upstream_error",
    "chat: invalid_type",
    "chat: key_invalid",
    "chat: model_not_found",
  ]);
  expect(JSON.stringify(receiver.spans.map(({ attributes }) => attributes))).not.toContain("invented");
});

const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "never answers": () => undefined,
  "answers byte after byte": (response) => {
    response.writeHead(200).write("a");
    const timer = setInterval(() => response.write("a"), 10);
    response.on("close", () => clearInterval(timer));
  },
  "answers with 10 MB": (response) => void response.writeHead(200).end(Buffer.alloc(10_000_000)),
  "leads elsewhere": (response) => void response.writeHead(307, { location: "/elsewhere" }).end(),
  fails: (response) => void response.writeHead(500).end(),
};

test.each(["is away", ...Object.keys(answers)])(
  "a collector that %s costs no request and no stop anything",
  async (what) => {
    const asked: unknown[] = [];
    const url =
      what === "is away"
        ? `http://127.0.0.1:${await freePort()}`
        : await serverOfTest((request, response) => {
            asked.push(request.url);
            request.resume().on("end", () => answers[what]?.(response));
          });
    const { gateway, endpoint } = await demonstration(all(url));
    expect(await endpoint.answer({ model: "scripted", says: "/script tokens=3 nonce=abc" })).toBe("abc-0 abc-1 abc-2 ");
    if (what !== "is away") await until(() => asked.length > 0, { what: "the first spans to be sent" });
    expect(await endpoint.answer({ model: "scripted", says: "/script tokens=3 nonce=abc" })).toBe("abc-0 abc-1 abc-2 ");
    if (what === "leads elsewhere" || what === "fails")
      await until(
        async () => (await MetricsText.scrape(gateway.operationsUrl)).value("trunkline_trace_spans_dropped_total"),
        {
          what: "dropped spans to be counted",
        },
      );
    const beganAtMs = systemClock.now();
    await gateway.stop(1_000);
    expect(systemClock.now() - beganAtMs).toBeLessThan(5_000);
    expect(asked).not.toContain("/elsewhere");
    const warned = gateway.logged.filter((line) => line.includes("the collector took no spans"));
    expect(warned).toHaveLength(what.startsWith("answers") ? 0 : 1);
  },
);

test("a gateway without a collector passes a client's traceparent on to the engine as it is", async () => {
  await using engine = await FakeVllm.start();
  const { endpoint } = await (await gatewayBefore("vllm", engine)).issue();
  await (await endpoint.post("/chat/completions", chat, { headers: ofClient })).text();
  const asked = engine.requests.findLast(({ path }) => path === "/v1/chat/completions");
  expect(asked?.headers["traceparent"]).toBe(ofClient.traceparent);
});

test("a gateway says at its start that it traces one request in ten, and which settings of OpenTelemetry it does not honour", async () => {
  const receiver = await OtlpReceiver.start();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_METRICS_EXPORTER: "otlp", OTEL_SDK_DISABLED: "" };
  const { gateway } = await demonstration(env);
  const logged = gateway.logged.join("");
  expect(logged).toMatch(/a part of 0\.1 of the requests is traced/);
  expect(logged).toMatch(/OTEL_METRICS_EXPORTER.*not honoured/s);
  expect(logged).not.toContain("OTEL_SDK_DISABLED");
});

test.each([
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector.example", "must be an http or https URL"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:word@collector.example", "OTEL_EXPORTER_OTLP_HEADERS"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "a token", "must be headers such as"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%0Ab", "must have values of printable ASCII"],
  ["OTEL_TRACES_SAMPLER", "sometimes", "must be one of always_on"],
  ["OTEL_TRACES_SAMPLER_ARG", "10", "from 0 to 1"],
  ["TRUNKLINE_TRACE_URL", "https://traces.example/", "must have {trace}"],
  ["TRUNKLINE_TRACE_URL", "javascript:alert('{trace}')", "must be an http or https URL"],
])("the setting %s is refused as %s with what it must be", (name, value, remedy) => {
  expect(() => gatewayConfig({ [name]: value })).toThrow(remedy);
});
