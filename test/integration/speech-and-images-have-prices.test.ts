import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { refusalOf } from "../harness/endpoint.ts";
import { FakeMediaServer } from "../harness/fake-media-server.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { removePrice, setPrice } from "../harness/set-records.ts";
import { until } from "../harness/until.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";

const parts = new AsyncDisposableStack();
let gateway: GatewayInProcess;
let operator: Operator;
let server: FakeMediaServer;
const stateDir = folderOfTests();
beforeAll(async () => {
  const file = join(stateDir, "models.json");
  const x_capabilities = ["transcription", "speech", "image", "moderation"];
  await writeFile(file, JSON.stringify({ m: { x_capabilities } }));
  server = parts.use(await FakeMediaServer.start());
  const env = {
    TRUNKLINE_RUNTIME: "openai",
    TRUNKLINE_RUNTIME_URL: server.url,
    TRUNKLINE_MODELS_FILE: file,
    TRUNKLINE_MEDIA_TOKENS: "second=50, image=1000, character=0.25",
  };
  gateway = parts.use(await startGatewayInProcess({ stateDir, env }));
  operator = Operator.beside(gateway.store);
});
afterAll(() => parts.disposeAsync());

/** Half a second of MP3, which the server calls a second, or another size. */
function recordingOf(bytes: number, fields: Readonly<Record<string, string>> = {}): FormData {
  const form = new FormData();
  form.append("model", "m");
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append("file", new File([Buffer.alloc(bytes)], "a.mp3"));
  return form;
}

test.each<[string, string, FormData | object, number]>([
  ["the seconds that its server reports", "/audio/transcriptions", recordingOf(8_000), 50],
  ["those of all its text", "/audio/transcriptions", recordingOf(8_000, { response_format: "verbose_json" }), 50],
  ["seconds estimated from the bytes", "/audio/translations", recordingOf(48_000, { response_format: "srt" }), 150],
  ["the characters that are spoken", "/audio/speech", { model: "m", input: "x".repeat(1_000) }, 250],
  ["the characters that are judged", "/moderations", { model: "m", input: ["x".repeat(500), "xxxx"] }, 126],
  ["its images, beyond the window of a model", "/images/generations", { model: "m", prompt: "A sky", n: 6 }, 6_000],
])("a key with a budget pays for %s", async (_, path, body, tokens) => {
  const { endpoint, record } = await gateway.issue({ limits: { budget: { tokens: 10_000, per: "month" } } });
  const response = await endpoint.post(path, body);
  expect(response.status).toBe(200);
  await response.arrayBuffer();
  const booked = await operator.booked(record.id);
  expect(booked).toMatchObject({ promptTokens: tokens, completionTokens: 0 });
});

test("a recording and images cost money by their seconds and by their number", async () => {
  const { endpoint, record } = await gateway.issue();
  await setPrice("m", { second: 100, image: 20_000 }, { ...gateway.store, actor: { by: "the operator" } });
  const told = async (path: string, body: FormData | object) => {
    const response = await endpoint.post(path, body);
    await response.arrayBuffer();
    return response.headers.get("x-trunkline-cost");
  };
  const images = { model: "m", prompt: "A sky", n: 3 };
  await until(() => told("/images/generations", images), { what: "the gateway to have the prices" });
  expect(await told("/images/generations", images)).toBe("0.06 units");
  expect(await told("/audio/transcriptions", recordingOf(8_000))).toBe("0.0001 units");
  expect((await operator.booked(record.id)).cost % 20_000).toBe(100);
  await removePrice("m", { ...gateway.store, actor: { by: "the operator" } });
});

test.each(["second", "second=", "second=-1", "minute=50", "second=50,", "image=1e3"])(
  "the start fails with prices that are none: %s",
  (prices) => {
    expect(() => gatewayConfig({ TRUNKLINE_MEDIA_TOKENS: prices })).toThrow(
      /TRUNKLINE_MEDIA_TOKENS must be tokens for/,
    );
  },
);

test("a recording of silence, whose text is empty, is paid for too", async () => {
  server.onAny = (response) => {
    server.onAny = undefined;
    response.writeHead(200, { "content-type": "text/plain" }).end();
  };
  const { endpoint, record } = await gateway.issue();
  await (await endpoint.post("/audio/transcriptions", recordingOf(16_000, { response_format: "text" }))).arrayBuffer();
  const booked = await operator.booked(record.id);
  expect(booked.promptTokens).toBe(50);
});

test("a key whose budget is used up makes no further image", async () => {
  const { endpoint } = await gateway.issue({ limits: { budget: { tokens: 1_000, per: "month" } } });
  const ask = { model: "m", prompt: "A sky" };
  await (await endpoint.post("/images/generations", ask)).arrayBuffer();
  expect(await refusalOf(endpoint.post("/images/generations", ask))).toMatchObject({
    status: 429,
    code: "insufficient_quota",
  });
});

test("a server that reports more seconds than the recording can have is not believed", async () => {
  server.onAny = (response) => {
    server.onAny = undefined;
    response.writeHead(200, { "content-type": "application/json" }).end('{"text":"Hi.","duration":900000}');
  };
  const { endpoint, record } = await gateway.issue();
  await (await endpoint.post("/audio/transcriptions", recordingOf(200_000))).arrayBuffer();
  const booked = await operator.booked(record.id);
  // 500 bytes are the least of a second, and a second costs 50 tokens.
  expect(booked.promptTokens).toBe(20_000);
});
