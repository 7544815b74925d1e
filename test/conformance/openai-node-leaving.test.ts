import OpenAI, { APIConnectionTimeoutError, APIUserAbortError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../harness/until.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";

describe("the official SDK, when it leaves before the end,", () => {
  let staged: StagedVllm;
  let client: OpenAI;
  beforeAll(async () => {
    staged = await startStagedVllm();
    client = new OpenAI({ baseURL: staged.up.endpoint.baseUrl, apiKey: staged.up.endpoint.key, maxRetries: 0 });
  });
  afterAll(() => staged[Symbol.asyncDispose]());
  beforeEach(() => {
    staged.answers((chat) => {
      chat.say("One ");
      chat.say("two ");
    });
  });

  const ask = () => ({ model: staged.model, messages: [{ role: "user" as const, content: "Count" }] });
  /** The runtime was at work, and is not any more, though its answer was never complete. */
  async function expectStopped(): Promise<void> {
    await until(() => staged.vllm.atWork === 0, { what: "the runtime to stop" });
    expect(staged.vllm.chats.at(-1)).toMatchObject({ closedEarly: true });
  }

  test("the official SDK, when it leaves before the end, stops the runtime by breaking out of a stream's loop", async () => {
    const stream = await client.chat.completions.create({ ...ask(), stream: true });
    for await (const { choices } of stream) if (choices[0]?.delta.content === "two ") break;
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime by aborting a stream, whose loop then ends", async () => {
    const stream = await client.chat.completions.create({ ...ask(), stream: true });
    const said: string[] = [];
    for await (const { choices } of stream) {
      said.push(choices[0]?.delta.content ?? "");
      if (said.at(-1) === "two ") stream.controller.abort();
    }
    expect(said.join("")).toBe("One two ");
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime by aborting the helper of streams, which then throws", async () => {
    const helper = client.chat.completions.stream(ask());
    helper.on("content", (_piece, whole) => whole === "One two " && helper.abort());
    expect(await thrownBy(helper.finalChatCompletion())).toBeInstanceOf(APIUserAbortError);
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime by a signal, though nothing of a whole answer was sent yet", async () => {
    const leaving = new AbortController();
    const asking = thrownBy(client.chat.completions.create(ask(), { signal: leaving.signal }));
    await until(() => staged.vllm.atWork === 1, { what: "the runtime to work" });
    leaving.abort();
    expect(await asking).toBeInstanceOf(APIUserAbortError);
    await expectStopped();
  });

  test("the official SDK, when it leaves before the end, stops the runtime when its own time is over", async () => {
    const asking = client.chat.completions.create(ask(), { timeout: 200 });
    expect(await thrownBy(asking)).toBeInstanceOf(APIConnectionTimeoutError);
    await expectStopped();
  });
});
