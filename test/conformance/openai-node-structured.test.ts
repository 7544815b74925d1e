import OpenAI from "openai";
import { LengthFinishReasonError } from "openai/core/error";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";

const weather = z.object({ city: z.string(), degrees: z.number() });
const oslo = { city: "Oslo", degrees: 7 };

describe("the official SDK's structured output", () => {
  let staged: StagedVllm;
  let client: OpenAI;
  beforeAll(async () => {
    staged = await startStagedVllm();
    client = new OpenAI({ baseURL: staged.up.endpoint.baseUrl, apiKey: staged.up.endpoint.key, maxRetries: 0 });
    staged.answers((chat) => {
      for (const piece of ['{"city":', '"Oslo",', '"degrees":7}']) chat.say(piece);
      chat.done();
    });
  });
  afterAll(() => staged[Symbol.asyncDispose]());

  const ask = () => ({
    model: staged.model,
    messages: [{ role: "user" as const, content: "How cold is Oslo?" }],
    response_format: zodResponseFormat(weather, "weather"),
  });

  test("is parsed by its helper, and the runtime is given the schema as it is", async () => {
    const { choices } = await client.chat.completions.parse(ask());
    expect(choices[0]?.message.parsed).toEqual(oslo);
    expect(choices[0]?.message.refusal).toBeNull();
    expect(staged.asked()["response_format"]).toEqual(JSON.parse(JSON.stringify(ask().response_format)));
  });

  test("is parsed by its helper out of a stream", async () => {
    const helper = client.chat.completions.stream(ask());
    const { choices } = await helper.finalChatCompletion();
    expect(choices[0]?.message.parsed).toEqual(oslo);
  });

  test("that is cut off is told as such, and never parsed", async () => {
    staged.answers((chat) => {
      chat.say('{"city":');
      chat.done({ finishReason: "length" });
    });
    expect(await thrownBy(client.chat.completions.parse(ask()))).toBeInstanceOf(LengthFinishReasonError);
  });

  test("the official SDK's structured output of a tool's arguments is parsed by its helper, for a tool that was told to be strict", async () => {
    staged.answers((chat) => {
      const called = { name: "report", arguments: JSON.stringify(oslo) };
      chat.call({ index: 0, id: "call_1", type: "function", function: called });
      chat.done({ finishReason: "tool_calls" });
    });
    const report = zodFunction({ name: "report", parameters: weather });
    const { model, messages } = ask();
    const { choices } = await client.chat.completions.parse({ model, messages, tools: [report] });
    const [{ message } = expect.fail("there was no choice")] = choices;
    expect(message.tool_calls).toMatchObject([{ function: { name: "report", parsed_arguments: oslo } }]);
    expect(staged.asked()["tools"]).toMatchObject([{ function: { name: "report", strict: true } }]);

    const answered = { role: "tool" as const, tool_call_id: "call_1", content: "Thanks." };
    const sentBack = { model, messages: [...messages, message, answered], tools: [report] };
    const { response } = await client.chat.completions.create(sentBack).withResponse();
    expect(response.headers.get("x-trunkline-ignored")).toBe("messages[1].tool_calls[0].function.parsed_arguments");
  });

  test("the official SDK's structured output of any object is asked for without a schema", async () => {
    await client.chat.completions.create({ ...ask(), response_format: { type: "json_object" } });
    expect(staged.asked()["response_format"]).toEqual({ type: "json_object" });
    await client.chat.completions.create({ ...ask(), response_format: { type: "text" } });
    expect(staged.asked()).not.toHaveProperty("response_format");
  });
});
