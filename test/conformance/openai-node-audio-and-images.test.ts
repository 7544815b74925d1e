import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import OpenAI, { BadRequestError, toFile } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeMediaServer } from "../harness/fake-media-server.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { thrownBy } from "./thrown-by.ts";

const parts = new AsyncDisposableStack();
let server: FakeMediaServer;
let client: OpenAI;
const folder = folderOfTests();
beforeAll(async () => {
  const file = join(folder, "models.json");
  await writeFile(file, JSON.stringify({ m: { x_capabilities: ["transcription", "speech", "image"] } }));
  server = parts.use(await FakeMediaServer.start());
  server.streamsAs = "openai";
  const up = parts.use(
    await startUp({
      TRUNKLINE_RUNTIME: "openai",
      TRUNKLINE_RUNTIME_URL: server.url,
      TRUNKLINE_MODELS_FILE: file,
    }),
  );
  client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key, maxRetries: 0 });
});
afterAll(() => parts.disposeAsync());

const model = "m";
const recording = () => toFile(Buffer.from("RIFF"), "a.wav");

test("the official SDK has a recording transcribed, as an object and as a text", async () => {
  const whole = await client.audio.transcriptions.create({ model, file: await recording() });
  expect(whole.text).toBe("Hello there.");
  const subtitles = await client.audio.transcriptions.create({
    model,
    file: await recording(),
    response_format: "srt",
  });
  expect(subtitles).toMatch(/^1\n00:00:00,000 --> /);
  const verbose = await client.audio.transcriptions.create({
    model,
    file: await recording(),
    response_format: "verbose_json",
    timestamp_granularities: ["word", "segment"],
  });
  expect(verbose).toMatchObject({ text: "Hello there.", duration: 1 });
});

test("the official SDK reads a transcription as a stream", async () => {
  const stream = await client.audio.transcriptions.create({ model, file: await recording(), stream: true });
  const events = await Array.fromAsync(stream);
  expect(events.map(({ type }) => type)).toEqual([
    "transcript.text.delta",
    "transcript.text.delta",
    "transcript.text.done",
  ]);
  expect(events.at(-1)).toMatchObject({ text: "Hello there.", usage: { total_tokens: 18 } });
});

test("the official SDK has a recording translated", async () => {
  const { text } = await client.audio.translations.create({ model, file: await recording() });
  expect(text).toBe("Hello there.");
});

test("the official SDK has a text spoken", async () => {
  const response = await client.audio.speech.create({
    model,
    input: "Hello.",
    voice: "alloy",
    response_format: "wav",
  });
  expect(response.headers.get("content-type")).toBe("audio/wav");
  expect((await response.arrayBuffer()).byteLength).toBe(8);
});

test("the official SDK has images made and changed", async () => {
  const made = await client.images.generate({ model, prompt: "A sky", size: "1024x1024", n: 1 });
  expect(Buffer.from(made.data?.[0]?.b64_json ?? "", "base64")).toHaveLength(12);
  const image = () => toFile(Buffer.from("PNG"), "a.png", { type: "image/png" });
  const edited = await client.images.edit({ model, prompt: "Darker", image: [await image(), await image()] });
  expect(edited.data).toHaveLength(1);
});

test("the official SDK throws the refusal of a field by its name", async () => {
  const asked = client.audio.transcriptions.create({ model, file: await recording(), temperature: 2 });
  const error = await thrownBy(asked);
  expect(error).toBeInstanceOf(BadRequestError);
  expect(error).toMatchObject({ code: "decimal_above_max_value", param: "temperature" });
});
