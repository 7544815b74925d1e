import OpenAI, { APIError, AuthenticationError, BadRequestError, InternalServerError, NotFoundError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { issueKey } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

let up: UpProcess;
let client: OpenAI;
beforeAll(async () => {
  up = await startUp();
  client = new OpenAI({ baseURL: up.endpoint.baseUrl, apiKey: up.endpoint.key });
});
afterAll(() => up[Symbol.asyncDispose]());

const messages = [{ role: "user" as const, content: "Hello" }];
const thrownBy = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );
const requestID = expect.stringMatching(/^req_\w{10,}$/);

describe("the official SDK throws", () => {
  test("AuthenticationError for a key that is not valid, and for one whose time has elapsed", async () => {
    const withKey = (apiKey: string) => client.withOptions({ apiKey });
    const invalid = await thrownBy(Promise.resolve(withKey("sk-nonsense").models.list()));
    expect(invalid).toBeInstanceOf(AuthenticationError);
    expect(invalid).toMatchObject({ status: 401, code: "key_invalid", param: null, requestID });
    const { key, expires_at: expiresAt } = await issueKey({ TRUNKLINE_STATE_DIR: up.stateDir }, { ttl: "1s" });
    await until(() => Date.now() > Date.parse(expiresAt), { what: "the key's time to elapse" });
    const expired = await thrownBy(withKey(key).chat.completions.create({ model: "scripted", messages }));
    expect(expired).toBeInstanceOf(AuthenticationError);
    expect(expired).toMatchObject({ status: 401, code: "key_expired", requestID });
  });

  test("NotFoundError for a model that does not exist, by a chat and by its id", async () => {
    const asks = [
      () => client.chat.completions.create({ model: "absent", messages }),
      () => client.models.retrieve("absent"),
      () => client.models.retrieve("a/b:c"),
    ];
    for (const ask of asks) {
      const error = await thrownBy(ask());
      expect(error).toBeInstanceOf(NotFoundError);
      expect(error).toMatchObject({ status: 404, code: "model_not_found", param: "model", requestID });
    }
  });

  test("NotFoundError for an endpoint that is not there yet", async () => {
    const error = await thrownBy(client.audio.speech.create({ model: "scripted", input: "Hello", voice: "alloy" }));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ code: "unknown_url", requestID });
  });

  test("BadRequestError for tools on a model without, and for what is out of range", async () => {
    const tools = [{ type: "function" as const, function: { name: "look" } }];
    const unable = await thrownBy(client.chat.completions.create({ model: "scripted:plain", messages, tools }));
    expect(unable).toBeInstanceOf(BadRequestError);
    expect(unable).toMatchObject({ status: 400, code: "model_does_not_support_tools", param: "tools", requestID });
    const range = await thrownBy(client.chat.completions.create({ model: "scripted", messages, temperature: 3 }));
    expect(range).toBeInstanceOf(BadRequestError);
    expect(range).toMatchObject({ code: "decimal_above_max_value", param: "temperature", requestID });
  });

  test("InternalServerError for a runtime that fails, after its own retries", async () => {
    const failing = [{ role: "user" as const, content: "/script fail_at=0" }];
    const error = await thrownBy(client.chat.completions.create({ model: "scripted", messages: failing }));
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 502, code: "upstream_error", requestID });
    const streamed = thrownBy(client.chat.completions.create({ model: "scripted", messages: failing, stream: true }));
    expect(await streamed).toBeInstanceOf(InternalServerError);
  });

  test("APIError out of a stream that fails, which never ends as a success", async () => {
    const failing = [{ role: "user" as const, content: "/script tokens=9 delay_ms=5 fail_at=3 nonce=abc" }];
    const said: string[] = [];
    const reading = (async () => {
      const stream = await client.chat.completions.create({ model: "scripted", messages: failing, stream: true });
      for await (const { choices } of stream) said.push(choices[0]?.delta.content ?? "");
    })();
    const error = await thrownBy(reading);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: "upstream_error", type: "server_error" });
    expect(said.join("")).toBe("abc-0 abc-1 abc-2 ");

    const runner = client.chat.completions.stream({ model: "scripted", messages: failing });
    expect(await thrownBy(runner.finalChatCompletion())).toBeInstanceOf(APIError);
  });
});
