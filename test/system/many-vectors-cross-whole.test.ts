import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";

const input = Array.from({ length: 2_048 }, (_, at) => `text ${at}`);
const list = z.object({ data: z.array(z.object({ index: z.int(), embedding: z.base64() })) });

describe.skipIf(lentOnly("nats", "redis"))("the vectors of as many texts as may be sent", () => {
  let fleet: Fleet;
  beforeAll(async () => void (fleet = await startFleet({ machines: { attic: { models: ["scripted:embed"] } } })));
  afterAll(() => fleet[Symbol.asyncDispose]());

  function embed(fields: Readonly<Record<string, unknown>>): Promise<Response> {
    return fleet.endpoint.embed({ model: "scripted:embed", input, ...fields });
  }

  test("the vectors of as many texts as may be sent with 4,096 numbers each cross the broker whole and in order", async () => {
    const response = await embed({ dimensions: 4_096, encoding_format: "base64" });
    expect(response.status).toBe(200);
    const { data } = list.parse(await response.json());
    expect(data.map(({ index }) => index)).toEqual(input.map((_, at) => at));
    expect(data.every(({ embedding }) => Buffer.from(embedding, "base64").length === 4_096 * 4)).toBe(true);
  });

  test("the vectors of as many texts as may be sent are refused by the name of the limit where they are longer than an answer may be, and others go on", async () => {
    const response = await embed({ dimensions: 4_096, encoding_format: "float" });
    expect(response.status).toBe(400);
    const { message, param } = await errorOf(response);
    expect(message).toMatch(/embeddingsCharactersMax.*fewer texts.*base64/);
    expect(param).toBe("input");
    expect((await embed({ input: "one" })).status).toBe(200);
  });
});
