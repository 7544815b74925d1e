import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { errorOf } from "../harness/endpoint.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ machines: { "gpu-1": { models: ["scripted:embed"] } } });
});
afterAll(() => fleet[Symbol.asyncDispose]());

const input = Array.from({ length: 2_048 }, (_, at) => `text ${at}`);
const list = z.object({ data: z.array(z.object({ index: z.int(), embedding: z.base64() })) });

function embed(fields: Readonly<Record<string, unknown>>): Promise<Response> {
  const { baseUrl, key } = fleet.endpoint;
  return fetch(`${baseUrl}/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "scripted:embed", input, ...fields }),
  });
}

test("the vectors of as many texts as may be sent, of 4,096 numbers each, cross a real broker whole", async () => {
  const response = await embed({ dimensions: 4_096, encoding_format: "base64" });
  expect(response.status).toBe(200);
  const { data } = list.parse(await response.json());
  expect(data.map(({ index }) => index)).toEqual(input.map((_, at) => at));
  expect(data.every(({ embedding }) => Buffer.from(embedding, "base64").length === 4_096 * 4)).toBe(true);
});

test("vectors that are longer than any answer may be are refused by the name of the limit, and others go on", async () => {
  const response = await embed({ dimensions: 4_096, encoding_format: "float" });
  expect(response.status).toBe(400);
  const { message, param } = await errorOf(response);
  expect(message).toMatch(/embeddingsCharactersMax.*fewer texts.*base64/);
  expect(param).toBe("input");
  expect((await embed({ input: "one" })).status).toBe(200);
});
