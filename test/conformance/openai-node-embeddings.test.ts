import OpenAI, { BadRequestError, NotFoundError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { issueKey } from "../harness/trunkline-command.ts";
import { thrownBy } from "./thrown-by.ts";

let up: UpProcess;
let client: OpenAI;
beforeAll(async () => {
  up = await startUp();
  client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key, maxRetries: 0 });
});
afterAll(() => up[Symbol.asyncDispose]());

const model = "scripted:embed";

describe("the official SDK's embeddings", () => {
  test("come in the order of the texts, with every field of the schema and the usage", async () => {
    const answer = await client.embeddings.create({ model, input: ["one two", "three"], encoding_format: "float" });
    expect(answer).toEqual({
      object: "list",
      data: [0, 1].map((index) => ({ object: "embedding", index, embedding: expect.any(Array) })),
      model,
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
    const alone = await client.embeddings.create({ model, input: "three", encoding_format: "float" });
    expect(alone.data[0]?.embedding).toEqual(answer.data[1]?.embedding);
    expect(answer.data[0]?.embedding).not.toEqual(answer.data[1]?.embedding);
  });

  test("are the same numbers as base64, which the SDK asks for by itself", async () => {
    const asked = { model, input: "one", dimensions: 8 };
    const [float, base64] = await Promise.all([
      client.embeddings.create({ ...asked, encoding_format: "float" }),
      client.embeddings.create(asked),
    ]);
    const [floats, decoded] = [float, base64].map(({ data }) => Array.from(data[0]?.embedding ?? []));
    expect(decoded).toHaveLength(8);
    expect(decoded).toEqual(floats?.map((component) => Math.fround(component)));
  });

  test("the official SDK's embeddings of as many texts as may be sent at once come whole and in order", async () => {
    const input = Array.from({ length: 2_048 }, (_, at) => `text ${at}`);
    const { data } = await client.embeddings.create({ model, input, dimensions: 1_536 });
    expect(data.map(({ index }) => index)).toEqual(input.map((_, at) => at));
    const alone = await client.embeddings.create({ model, input: "text 2047", dimensions: 1_536 });
    expect(data.at(-1)?.embedding).toEqual(alone.data[0]?.embedding);
  });

  test("the official SDK's embeddings of a model that only chats, and a chat with one that only embeds, are refused with the parameter", async () => {
    const embedding = await thrownBy(client.embeddings.create({ model: "scripted", input: "a" }));
    expect(embedding).toBeInstanceOf(BadRequestError);
    expect(embedding).toMatchObject({ code: "unsupported_value", param: "model" });
    const messages = [{ role: "user" as const, content: "Hello" }];
    const chat = await thrownBy(client.chat.completions.create({ model, messages }));
    expect(chat).toMatchObject({ status: 400, code: "unsupported_value", param: "model" });
  });

  test("that are asked for in a wrong way are refused with the parameter", async () => {
    const error = await thrownBy(client.embeddings.create({ model, input: [1, 2, 300_000] }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ type: "invalid_request_error", code: "invalid_value", param: "input[2]" });
  });

  test("of tokens, as LangChain sends them, are those of the text that they stand for", async () => {
    const asked = { model, encoding_format: "float" as const };
    const [byTokens, byText] = await Promise.all([
      client.embeddings.create({ ...asked, input: [[15339, 1917]] }),
      client.embeddings.create({ ...asked, input: ["hello world"] }),
    ]);
    expect(byTokens.data).toEqual(byText.data);
  });

  test("the official SDK's embeddings of a model outside the key's scopes, or of none, do not exist", async () => {
    const { key } = await issueKey({ TRUNKLINE_STATE_DIR: up.stateDir }, "--scopes", "scripted:plain");
    const outside = await thrownBy(client.withOptions({ apiKey: key }).embeddings.create({ model, input: "a" }));
    const absent = await thrownBy(client.embeddings.create({ model: "absent", input: "a" }));
    for (const error of [outside, absent]) {
      expect(error).toBeInstanceOf(NotFoundError);
      expect(error).toMatchObject({ code: "model_not_found", param: "model" });
    }
  });

  test("name what was ignored", async () => {
    const { response } = await client.embeddings.create({ model, input: "a", user: "ann" }).withResponse();
    expect(response.headers.get("x-trunkline-ignored")).toBe("user");
  });
});
