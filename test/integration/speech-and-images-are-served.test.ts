import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Endpoint, errorOf, refusalOf } from "../harness/endpoint.ts";
import { FakeMediaServer, formOf } from "../harness/fake-media-server.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { gatewayBefore } from "../harness/server-of-test.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

/** Bytes that are no text, with line breaks and dashes such as a careless reader takes for a boundary. */
const recording = Buffer.concat([
  Buffer.from("RIFF\r\n--\r\n----\r\n\r\n"),
  Buffer.from([0, 255, 254, 13, 10, 45, 45]),
]);

let server: FakeMediaServer;
let gateway: GatewayInProcess;
let endpoint: Endpoint;
const parts = new AsyncDisposableStack();
const folder = folderOfTests();
beforeAll(async () => {
  const file = join(folder, "models.json");
  const x_capabilities = ["transcription", "speech", "image"];
  await writeFile(file, JSON.stringify({ m: { x_capabilities }, able: { x_capabilities: ["rerank"] } }));
  const models = [
    { id: "m", owned_by: "someone" },
    { id: "able", owned_by: "someone" },
    { id: "whisper", owned_by: "Systran", task: "automatic-speech-recognition", language: ["en"] },
    { id: "piper", owned_by: "speaches-ai", task: "text-to-speech" },
    { id: "silero", owned_by: "snakers4", task: "voice-activity-detection" },
    { id: "kokoro", owned_by: "kokoro" },
  ];
  server = parts.use(await FakeMediaServer.start({ models }));
  gateway = parts.use(
    await startGatewayInProcess({
      env: { TRUNKLINE_RUNTIME: "openai", TRUNKLINE_RUNTIME_URL: server.url, TRUNKLINE_MODELS_FILE: file },
    }),
  );
  usualSpeech = server.onSpeech;
  ({ endpoint } = await gateway.issue());
});
afterAll(() => parts.disposeAsync());

/** The requests about speech and images since the test began. */
const asked = () => server.asked.slice(askedBefore);
let askedBefore = 0;
let usualSpeech: FakeMediaServer["onSpeech"];
beforeEach(() => {
  askedBefore = server.asked.length;
  server.onAny = server.streamsAs = undefined;
  server.onSpeech = usualSpeech;
});

function formWith(fields: Readonly<Record<string, unknown>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    for (const each of [value].flat()) {
      if (each instanceof File) form.append(name, each);
      else form.append(name, String(each));
    }
  }
  return form;
}

const wav = new File([recording], 'a "loud"\u00e9.wav', { type: "audio/wav" });
const png = new File([recording], "a.png", { type: "image/png" });

const transcribe = (fields: Readonly<Record<string, unknown>>) =>
  endpoint.post("/audio/transcriptions", formWith({ model: "m", file: wav, ...fields }));

/** Each endpoint: a request, and the ability that its model needs. */
const endpoints = {
  transcription: {
    path: "/audio/transcriptions",
    body: (model = "m") => formWith({ model, file: wav }),
    lacking: "transcribe speech",
  },
  translation: {
    path: "/audio/translations",
    body: (model = "m") => formWith({ model, file: wav }),
    lacking: "transcribe speech",
  },
  speech: { path: "/audio/speech", body: (model = "m") => ({ model, input: "Hello.", voice: "v" }), lacking: "speak" },
  images: { path: "/images/generations", body: (model = "m") => ({ model, prompt: "A sky" }), lacking: "make images" },
  edits: {
    path: "/images/edits",
    body: (model = "m") => formWith({ model, prompt: "A sky", image: png }),
    lacking: "make images",
  },
} as const;

describe.each(Object.entries(endpoints))("%s", (name, { path, body, lacking }) => {
  test(`${name} goes to the same path of the server, and its answer comes back`, async () => {
    const response = await endpoint.post(path, body());
    expect(response.status).toBe(200);
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(0);
    expect(asked().map((request) => request.path)).toEqual([`/v1${path}`]);
  });

  test(`${name} is refused for a model without the ability`, async () => {
    const response = await endpoint.post(path, body("able"));
    expect(response.status).toBe(400);
    const message = `The model 'able' does not ${lacking}.`;
    expect(await errorOf(response)).toMatchObject({ code: "unsupported_value", param: "model", message });
  });

  test(`${name} tells a failure of the server without its words`, async () => {
    server.onAny = (response) => void response.writeHead(500).end('{"detail":"CUDA error in /secret/path"}');
    const response = await endpoint.post(path, body());
    expect(response.status).toBe(502);
    expect(await response.text()).not.toContain("secret");
  });

  test(`${name} is a failure of the machine if the server answers with a web page`, async () => {
    server.onAny = (response) =>
      void response.writeHead(200, { "content-type": "text/html" }).end('{"text":"<script>alert(1)</script>"}');
    const response = await endpoint.post(path, body());
    expect(response.status).toBe(502);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  });
});

test("a transcription has the recording byte for byte, the fields that were sent and no others", async () => {
  const response = await transcribe({
    language: "en",
    prompt: "Names: Zo\u00eb.",
    response_format: "verbose_json",
    temperature: 0.5,
    "timestamp_granularities[]": ["word", "segment"],
    hotwords: "x",
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-trunkline-ignored")).toBe("hotwords");
  const [request] = asked();
  const { fields, files } = await formOf(request ?? expect.fail("the server was not asked"));
  expect(fields).toEqual({
    model: "m",
    language: "en",
    prompt: "Names: Zo\u00eb.",
    response_format: "verbose_json",
    temperature: "0.5",
    "timestamp_granularities[]": ["word", "segment"],
  });
  expect(files["file"]).toMatchObject({ name: wav.name, type: "audio/wav" });
  expect(files["file"]?.bytes.equals(recording)).toBe(true);
});

test("a transcription with lines in a text and quotes in a file name reaches the server as it was written", async () => {
  const head = (disposition: string): string => `--x\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`;
  const hostile = 'name="file"; filename="a\\"; name=\\"model"';
  const response = await fetch(`${endpoint.baseUrl}/audio/transcriptions`, {
    method: "POST",
    headers: { authorization: `Bearer ${endpoint.key}`, "content-type": "multipart/form-data; boundary=x" },
    body: `${head('name="model"')}m\r\n${head('name="prompt"')}a\nb\r\n${head(hostile)}abc\r\n--x--\r\n`,
  });
  expect(response.status).toBe(200);
  const { fields, files } = await formOf(asked()[0] ?? expect.fail("the server was not asked"));
  expect([fields, Object.keys(files)]).toEqual([{ model: "m", prompt: "a\nb" }, ["file"]]);
  expect(asked()[0]?.bytes.toString()).toContain('filename="a%22; name=%22model"');
});

test.each([
  ["of silence is an empty text", ""],
  ["of five million characters comes whole as a text", "Hello. ".repeat(700_000)],
])("a transcription %s", async (_, text) => {
  server.onAny = (response) => void response.writeHead(200, { "content-type": "text/plain" }).end(text);
  const response = await transcribe({ response_format: "text" });
  expect([response.status, (await response.text()) === text]).toEqual([200, true]);
});

test.each([
  ["json", "application/json; charset=utf-8", '{"text":"Hello there.","usage":{"type":"duration","seconds":1}}'],
  ["text", "text/plain; charset=utf-8", "Hello there."],
  ["srt", "text/plain; charset=utf-8", "1\n00:00:00,000 --> 00:00:01,000\nHello there.\n\n"],
  ["vtt", "text/plain; charset=utf-8", "WEBVTT\n\n00:00.000 --> 00:01.000\nHello there.\n\n"],
])("a transcription comes as %s where that is asked for", async (format, type, told) => {
  const response = await transcribe({ response_format: format });
  expect([response.headers.get("content-type"), await response.text()]).toEqual([type, told]);
});

test("a transcription is a plain text also of a server that wraps every text in JSON", async () => {
  server.onAny = (response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end('{"text":"Hi.","usage":null}');
  expect(await (await transcribe({ response_format: "text" })).text()).toBe("Hi.");
});

test.each([
  ["a plain text that whisper.cpp calls HTML", "Hello there.\n", 200],
  ["no page of a proxy", "<html><body>Bad gateway</body></html>", 502],
])("a transcription is %s", async (_, text, status) => {
  server.onAny = (response) => void response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(text);
  const response = await transcribe({ response_format: "text" });
  expect(response.status).toBe(status);
  if (status === 200) expect(await response.text()).toBe(text);
});

test.each(["openai", "vllm", "speaches"] as const)(
  "a transcription is streamed as OpenAI's events by a server like %s's",
  async (as) => {
    server.streamsAs = as;
    const response = await transcribe({ stream: true });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const events = (await response.text()).split("\n\n").filter(Boolean);
    expect(events.map((event) => JSON.parse(event.replace("data: ", "")) as object)).toEqual([
      { type: "transcript.text.delta", delta: "Hello " },
      { type: "transcript.text.delta", delta: "there." },
      {
        type: "transcript.text.done",
        text: "Hello there.",
        ...(as === "openai" && {
          usage: { type: "tokens", input_tokens: 14, output_tokens: 4, total_tokens: 18 },
        }),
      },
    ]);
  },
);

test("a transcription is refused as a stream by the name of the field where the server streams none", async () => {
  const refused = { status: 400, code: "unsupported_value", param: "stream" };
  expect(await refusalOf(transcribe({ stream: true }))).toMatchObject(refused);
});

test("a transcription tells the logprobs of a server that has them, and is refused by name where it has none", async () => {
  const asksLogprobs = { "include[]": "logprobs" };
  const refused = { status: 400, code: "unsupported_value", param: "include[]" };
  expect(await refusalOf(transcribe(asksLogprobs))).toMatchObject(refused);
  server.tellsLogprobs = true;
  const answer = await transcribe(asksLogprobs);
  server.tellsLogprobs = false;
  expect(await answer.json()).toMatchObject({ logprobs: [{ logprob: -0.5 }] });
  expect(await refusalOf(transcribe({ ...asksLogprobs, stream: true }))).toMatchObject({
    status: 400,
    param: "include[]",
  });
});

test("a transcription of 24 MB crosses the broker in parts", async () => {
  const large = Buffer.alloc(24 * 1024 * 1024, "0123456789\r\n--");
  const response = await transcribe({ file: new File([large], "long.wav") });
  expect(response.status).toBe(200);
  const { files } = await formOf(asked()[0] ?? expect.fail("the server was not asked"));
  expect(files["file"]?.bytes.equals(large)).toBe(true);
});

describe("speech", () => {
  const speak = (fields: object = {}) => endpoint.post("/audio/speech", { model: "m", input: "Hello.", ...fields });

  test("speech has the bytes and the media type of the server", async () => {
    const response = await speak({ voice: "v", speed: 1.5, response_format: "mp3" });
    expect(response.headers.get("content-type")).toBe("audio/wav");
    expect([...Buffer.from(await response.arrayBuffer())]).toEqual([82, 73, 70, 70, 0, 255, 254, 128]);
    expect(asked()[0]?.body).toEqual({ model: "m", input: "Hello.", voice: "v", speed: 1.5, response_format: "mp3" });
  });

  test("speech comes as OpenAI's events where its client asks for them, and the server is asked for audio", async () => {
    const response = await speak({ stream_format: "sse" });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const events = (await response.text()).split("\n\n").filter(Boolean);
    const parsed = events.map((event) => JSON.parse(event.replace("data: ", "")) as { type: string; audio?: string });
    expect(parsed.at(-1)).toEqual({ type: "speech.audio.done" });
    const audio = parsed.flatMap(({ type, audio: piece = "" }) => (type === "speech.audio.delta" ? [piece] : []));
    expect(Buffer.concat(audio.map((piece) => Buffer.from(piece, "base64")))).toEqual(
      Buffer.from([82, 73, 70, 70, 0, 255, 254, 128]),
    );
    expect(asked()[0]?.body).toEqual({ model: "m", input: "Hello." });
  });

  test("speech has the media type of the format that was asked for where the server tells none", async () => {
    server.onSpeech = (response) => void response.writeHead(200).end("abc");
    expect((await speak()).headers.get("content-type")).toBe("audio/mpeg");
  });

  test("speech reaches its client piece by piece, before the server has ended", async () => {
    const first = Promise.withResolvers<void>();
    server.onSpeech = async (response) => {
      response.writeHead(200, { "content-type": "audio/mpeg" });
      response.write("first");
      await first.promise;
      response.end("last");
    };
    const reader = (await speak()).body?.getReader() ?? expect.fail("the answer has no body");
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("first");
    first.resolve();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("last");
  });

  test("speech is cut off, and never ends as if it were whole, if the server breaks off", async () => {
    const begun = Promise.withResolvers<void>();
    server.onSpeech = async (response) => {
      response.writeHead(200, { "content-type": "audio/mpeg" });
      response.write("first");
      await begun.promise;
      response.destroy();
    };
    const response = await speak();
    begun.resolve();
    await expect(response.arrayBuffer()).rejects.toThrow();
  });

  test("speech waits at the server while its client does not read", async () => {
    let written = 0;
    const whole = 64 * 1024 * 1024;
    const piece = Buffer.alloc(64 * 1024, 3);
    server.onSpeech = async (response) => {
      response.writeHead(200, { "content-type": "audio/pcm" });
      for (; written < whole; written += piece.byteLength) if (!response.write(piece)) await once(response, "drain");
      response.end();
    };
    const response = await speak();
    let before = -1;
    await until(
      () => {
        const isStill = written === before;
        before = written;
        return isStill;
      },
      { what: "the server to wait", intervalMs: 300 },
    );
    expect(written).toBeLessThan(whole / 2);
    await response.body?.cancel();
  });
});

test("an image of 20 MB comes whole", async () => {
  server.imageBytes = 20 * 1024 * 1024;
  const response = await endpoint.post("/images/generations", { model: "m", prompt: "A sky", n: 1, size: "64x64" });
  const { data } = (await response.json()) as { data: { b64_json: string }[] };
  expect(Buffer.from(data[0]?.b64_json ?? "", "base64").byteLength).toBe(server.imageBytes);
});

test("an edit has all its images and the mask", async () => {
  const body = formWith({ model: "m", prompt: "A sky", "image[]": [png, png], mask: png, n: 2 });
  const response = await endpoint.post("/images/edits", body);
  expect(response.status).toBe(200);
  const [request] = asked();
  const { fields, files } = await formOf(request ?? expect.fail("the server was not asked"));
  expect(fields).toEqual({ model: "m", prompt: "A sky", n: "2" });
  expect(Object.keys(files)).toEqual(["image[]", "mask"]);
  expect(request?.bytes.toString("latin1").split('name="image[]"')).toHaveLength(3);
});

test("the list of models tells what speaches and Kokoro-FastAPI tell of theirs", async () => {
  const { data } = (await (await endpoint.get("/models")).json()) as {
    data: { id: string; capabilities: { completion: boolean }; x_capabilities?: string[] }[];
  };
  const told = data.map(({ id, capabilities, x_capabilities: abilities }) => [id, capabilities.completion, abilities]);
  expect(told).toEqual([
    ["able", false, ["rerank"]],
    ["kokoro", false, ["speech"]],
    ["m", false, ["transcription", "speech", "image"]],
    ["piper", false, ["speech"]],
    ["whisper", false, ["transcription"]],
  ]);
});

test("the list of models tells what LocalAI tells of its models", async () => {
  const models = [
    { id: "flux", capabilities: ["image"] },
    { id: "qwen", capabilities: ["chat", "completion", "vision", "tools"] },
    { id: "bge", capabilities: ["embeddings", "rerank"] },
    { id: "silero", capabilities: ["vad"] },
    { id: "parakeet", capabilities: ["transcript"] },
    { id: "unknown", capabilities: null },
    { id: "piper", capabilities: ["tts"] },
  ];
  await using localAi = await FakeMediaServer.start({ models });
  const { endpoint: own } = await (await gatewayBefore("openai", localAi)).issue();
  const { data } = (await (await own.get("/models")).json()) as {
    data: { id: string; capabilities: Record<string, boolean>; x_capabilities?: string[] }[];
  };
  const told = data.map(({ id, capabilities, x_capabilities: abilities = [] }) => [
    id,
    ...Object.keys(capabilities).filter((each) => capabilities[each]),
    ...abilities,
  ]);
  expect(told).toEqual([
    ["bge", "embedding", "rerank"],
    ["flux", "image"],
    ["parakeet", "transcription"],
    ["piper", "speech"],
    ["qwen", "completion", "vision", "tools"],
  ]);
});

test("vLLM with a model that transcribes is found to do so", async () => {
  await using vllm = await FakeVllm.start({ models: [{ id: "whisper" }], task: "transcription" });
  const { endpoint: own } = await (await gatewayBefore("vllm", vllm)).issue();
  await until(async () => (await (await own.get("/models")).text()).includes("transcription"), {
    what: "the model to be known",
  });
  const response = await own.post("/audio/transcriptions", formWith({ model: "whisper", file: wav }));
  expect(await response.json()).toEqual({ text: "Hello.", usage: { type: "duration", seconds: 1 } });
});

test("a server like whisper.cpp's, which has no list of models, is offered as `whisper-1`", async () => {
  await using listless = await FakeMediaServer.start({ listless: true });
  const { endpoint: own } = await (await gatewayBefore("openai", listless)).issue();
  const listed = await until(
    async () => {
      const { data } = (await (await own.get("/models")).json()) as {
        data: { id: string; x_capabilities?: string[] }[];
      };
      return data[0];
    },
    { what: "the model to be listed" },
  );
  expect(listed).toMatchObject({ id: "whisper-1", x_capabilities: ["transcription"] });
  const response = await own.post("/audio/transcriptions", formWith({ model: "whisper-1", file: wav }));
  expect(await response.json()).toMatchObject({ text: "Hello there." });
  expect(await refusalOf(own.post("/audio/translations", formWith({ model: "whisper-1", file: wav })))).toMatchObject({
    status: 400,
    code: "unsupported_value",
    param: "model",
  });
});
