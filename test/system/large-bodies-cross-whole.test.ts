import { createHash, randomBytes } from "node:crypto";
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

const million = 1_000_000;
const limit = String(32 * 1024 * 1024);
const model = "llava";

/** Bytes that cannot be made again from less, so that a lost or doubled part shows. */
const picture = randomBytes(15 * million).toString("base64");
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const looking = (image: string, text: string) => [
  {
    role: "user" as const,
    content: [
      { type: "text" as const, text },
      { type: "image_url" as const, image_url: { url: `data:image/png;base64,${image}` } },
    ],
  },
];

describe.skipIf(lentOnly("nats", "redis"))("a body of 20 MB, through a broker that takes 1 MB at a time", () => {
  let ollama: FakeOllama;
  let fleet: Fleet;
  beforeAll(async () => {
    ollama = await FakeOllama.start({ models: [{ name: `${model}:latest`, capabilities: ["completion", "vision"] }] });
    const env = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url };
    fleet = await startFleet({ machines: { attic: { env } } });
    await fleet.endpoint.untilListed(model);
  });
  afterAll(async () => {
    await fleet[Symbol.asyncDispose]();
    await ollama.stop();
  });

  test("a body of 20 MB, through a broker that takes 1 MB at a time, arrives at the runtime whole, on a whole answer and on a stream", async () => {
    const messages = looking(picture, "What is this?");
    expect(JSON.stringify(messages).length).toBeGreaterThan(20 * million);
    expect(await fleet.endpoint.answer({ model, messages })).toBe("Hello from Ollama.");
    const stream = await fleet.endpoint.stream({ model, messages });
    await stream.over;
    expect([stream.text, stream.done]).toEqual(["Hello from Ollama.", true]);

    const got = ollama.requestsTo("/api/chat").map(({ body }) => body["messages"]);
    expect(got).toHaveLength(2);
    for (const each of got) {
      expect(each).toEqual([{ role: "user", content: "What is this?", images: [expect.any(String)] }]);
      const [{ images }] = each as [{ images: [string] }];
      expect(sha256(images[0])).toBe(sha256(picture));
    }
  });

  test("several at once do not mix, and small requests pass beside them", async () => {
    const pictures = Array.from({ length: 3 }, () => randomBytes(6 * million).toString("base64"));
    const large = pictures.map((each, place) =>
      fleet.endpoint.answer({ model, messages: looking(each, `picture ${place}`) }),
    );
    expect(await fleet.endpoint.answer({ model, says: "Hello" })).toBe("Hello from Ollama.");
    expect(await Promise.all(large)).toEqual(pictures.map(() => "Hello from Ollama."));
    for (const [place, each] of pictures.entries()) {
      const arrived = ollama
        .requestsTo("/api/chat")
        .find(({ body }) => JSON.stringify(body).includes(`picture ${place}`));
      expect(JSON.stringify(arrived?.body["messages"])).toContain(each.slice(-1_000));
    }
  });
});

describe("a body of 40 MB is 413 with the limit in its message", () => {
  const content = "x".repeat(40 * million);

  test("a body of 40 MB is 413 with the limit in its message for plain fetch, whether or not its length is known beforehand", async () => {
    await using up = await startUp();
    const { baseUrl, key } = up.endpoint;
    const body = JSON.stringify({ model: "scripted", messages: [{ role: "user", content }] });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    for (const sent of [body, new Blob([body]).stream()]) {
      const init = { method: "POST", headers, body: sent, duplex: "half" as const };
      const response = await fetch(`${baseUrl}/chat/completions`, init);
      expect([response.status, response.headers.has("x-request-id")]).toEqual([413, true]);
      expect(await errorOf(response)).toMatchObject({
        code: "request_too_large",
        param: null,
        message: expect.stringContaining(limit),
      });
    }
    expect((await up.endpoint.models()).status).toBe(200);
  });

  test("a body of 40 MB is 413 with the limit in its message for the official SDK, at the first try", async () => {
    await using up = await startUp();
    const client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key });
    const asked = client.chat.completions.create({ model: "scripted", messages: [{ role: "user", content }] });
    const error: unknown = await asked.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 413, code: "request_too_large", message: expect.stringContaining(limit) });
    expect((await up.endpoint.models()).status).toBe(200);
    await until(async () => (await requestsLogged(up)).length === 2, { what: "both requests to be logged" });
    expect(await requestsLogged(up)).toEqual([413, 200]);
  });
});

async function requestsLogged(up: UpProcess): Promise<unknown[]> {
  return (await up.logLines()).filter(({ msg }) => msg === "request").map((line) => line["status"]);
}
