import OpenAI, { NotFoundError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Endpoint } from "../harness/endpoint.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { callTwice, cities, failInTheMiddle, sayHello } from "./staged-answers.ts";
import { startStagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";

/** A site that stores responses: its model, and a client of one key at each of two of its gateways. */
interface Site extends AsyncDisposable {
  readonly model: string;
  readonly vllm: FakeVllm;
  readonly here: OpenAI;
  readonly there: OpenAI;
}

const clientOf = ({ baseUrl, key: apiKey }: Endpoint): OpenAI =>
  new OpenAI({ baseURL: baseUrl, apiKey, maxRetries: 0 });

async function onSqlite(): Promise<Site> {
  const { up, model, vllm, ...staged } = await startStagedVllm({ TRUNKLINE_STORE_RESPONSES: "on" });
  const client = clientOf(up.endpoint);
  return { model, vllm, here: client, there: client, ...staged };
}

/** The site stores nothing there but for the key that says so. */
async function onRedis(): Promise<Site> {
  await using parts = new AsyncDisposableStack();
  const model = "Qwen/Qwen3-8B";
  const vllm = parts.use(await FakeVllm.start());
  const env = { TRUNKLINE_RUNTIME: "vllm", TRUNKLINE_RUNTIME_URL: vllm.url };
  const fleet = parts.use(await startFleet({ gateways: 2, machines: { gpu: { env } } }));
  const operator = parts.use(await Operator.on({ redisUrl: fleet.redis.url }));
  const key = (await operator.issue({ storesResponses: true })).token.reveal();
  const endpoints = fleet.endpoints.map((each) => each.withKey(key));
  for (const endpoint of endpoints) await endpoint.untilListed(model);
  const [here, there] = endpoints.map(clientOf);
  if (here === undefined || there === undefined) throw new Error("there are no two gateways");
  const started = parts.move();
  return { model, vllm, here, there, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

describe.each<[string, () => Promise<Site>]>([
  ["of npm start, whose store is SQLite,", onSqlite],
  ...(lentOnly("nats", "redis") ? [] : [["of two gateways on one Redis", onRedis] as [string, () => Promise<Site>]]),
])("at a site %s the official SDK", (_name, start) => {
  let site: Site;
  beforeAll(async () => void (site = await start()));
  afterAll(() => site?.[Symbol.asyncDispose]());

  const messages = () => site.vllm.chats.at(-1)?.body["messages"];
  const ask = (input: string, more: object = {}) => ({ model: site.model, input, ...more });
  const talk = [
    { role: "user", content: "My name is Ann." },
    { role: "assistant", content: "Hello there." },
    { role: "user", content: "Who am I?" },
  ];

  test("goes on from a response, and the model reads the turns before it without their instructions", async () => {
    site.vllm.onChat = sayHello;
    const first = await site.here.responses.create(ask("My name is Ann.", { instructions: "Be kind." }));
    expect(first).toMatchObject({ store: true, previous_response_id: null });
    const going = { previous_response_id: first.id, instructions: "Be brief." };
    const second = await site.there.responses.create(ask("Who am I?", going));
    expect(second).toMatchObject({ store: true, previous_response_id: first.id, output_text: "Hello there." });
    expect(messages()).toMatchObject([{ role: "system", content: "Be brief." }, ...talk]);
    await site.here.responses.create(ask("And you?", { previous_response_id: second.id }));
    expect(messages()).toMatchObject([...talk, talk[1], { role: "user", content: "And you?" }]);
  });

  test("talks in a conversation at any gateway, and reads its items", async () => {
    site.vllm.onChat = sayHello;
    const says = (content: string) => [{ type: "message" as const, role: "user" as const, content }];
    const begun = await site.here.conversations.create({
      items: says("My name is Ann."),
      metadata: { topic: "names" },
    });
    const { id } = begun;
    const first = await site.there.responses.create(ask("Hello.", { conversation: id }));
    expect(first).toMatchObject({ conversation: { id }, previous_response_id: null, store: true });
    await site.there.conversations.items.create(id, { items: says("I am fine.") });
    await site.here.responses.stream(ask("Who am I?", { conversation: { id } })).finalResponse();
    const said = ["My name is Ann.", "Hello.", "Hello there.", "I am fine.", "Who am I?"];
    expect(messages()).toMatchObject(said.map((content) => ({ content })));

    const listed = await site.there.conversations.items.list(id, { order: "asc", limit: 2 });
    const texts: unknown[] = [];
    for await (const item of listed) texts.push("content" in item && item.content);
    expect(texts).toMatchObject([...said, "Hello there."].map((text) => [{ text }]));
    const { _request_id, ...read } = await site.there.conversations.retrieve(id);
    expect(begun).toMatchObject(read);
    expect(read).toMatchObject({ object: "conversation", metadata: { topic: "names" } });

    expect(await site.here.conversations.delete(id)).toMatchObject({ id, deleted: true });
    await expect(site.there.conversations.retrieve(id)).rejects.toThrow(NotFoundError);
    await expect(site.there.responses.create(ask("Hi", { conversation: id }))).rejects.toThrow(NotFoundError);
    expect(await site.there.responses.retrieve(first.id)).toMatchObject({ output_text: "Hello there." });
  });

  test("reads one item of a conversation and deletes it, and the model does not read it any more", async () => {
    site.vllm.onChat = sayHello;
    const says = (content: string) => ({ type: "message" as const, role: "user" as const, content });
    const { id } = await site.here.conversations.create({ items: [says("My name is Ann."), says("I am nine.")] });
    await site.there.responses.create(ask("Hello.", { conversation: id }));
    const idsOf = async (order: "asc" | "desc") =>
      (await Array.fromAsync(site.there.conversations.items.list(id, { order, limit: 2 }))).map(
        (item) => item.id ?? "",
      );
    const ids = await idsOf("asc");
    expect(ids).toHaveLength(4);
    const [, second = "", , answered = ""] = ids;
    const of = { conversation_id: id };
    expect(await site.here.conversations.items.retrieve(second, of)).toMatchObject({
      id: second,
      content: [{ text: "I am nine." }],
    });
    for (const item of [second, answered])
      expect(await site.here.conversations.items.delete(item, of)).toMatchObject({ id, object: "conversation" });
    const left = ids.filter((item) => item !== second && item !== answered);
    expect([await idsOf("asc"), await idsOf("desc")]).toEqual([left, left.toReversed()]);
    for (const gone of [second, answered, "msg_none"]) {
      await expect(site.there.conversations.items.retrieve(gone, of)).rejects.toThrow(NotFoundError);
      await expect(site.there.conversations.items.delete(gone, of)).rejects.toThrow(NotFoundError);
    }
    await site.there.responses.create(ask("Who am I?", { conversation: id }));
    expect(messages()).toMatchObject(["My name is Ann.", "Hello.", "Who am I?"].map((content) => ({ content })));
  });

  test("counts the tokens of a request with the turns before it, and runs nothing", async () => {
    site.vllm.onChat = sayHello;
    const { id } = await site.here.responses.create(ask("My name is Ann."));
    const asked = site.vllm.chats.length;
    const alone = await site.here.responses.inputTokens.count(ask("Who am I?"));
    const going = await site.there.responses.inputTokens.count(ask("Who am I?", { previous_response_id: id }));
    expect([alone.object, going.object]).toEqual(Array(2).fill("response.input_tokens"));
    expect(going.input_tokens).toBeGreaterThan(alone.input_tokens);
    expect(alone.input_tokens).toBeGreaterThan(0);
    expect(site.vllm.chats).toHaveLength(asked);
  });

  test("is told that no response is compacted or cancelled here", async () => {
    const told = { status: 404, code: "unknown_url", message: expect.stringContaining("none is compacted") };
    const compacting = site.here.responses.compact({ model: "gpt-5.2", input: "Hello" });
    expect(await thrownBy(compacting)).toMatchObject(told);
    expect(await thrownBy(site.here.responses.cancel("resp_123"))).toMatchObject(told);
  });

  test("keeps every turn of a conversation, also of two that end at once", async () => {
    site.vllm.onChat = sayHello;
    const { id } = await site.here.conversations.create();
    const asking = [site.here, site.there].map((client) =>
      client.responses.create(ask("Hello.", { conversation: id })),
    );
    await Promise.all(asking);
    await site.here.responses.create(ask("Well?", { conversation: id }));
    const own = await site.there.conversations.items.list(id);
    expect(own.data).toHaveLength(6);
  });

  test("goes on from a stream as soon as its last event has come", async () => {
    site.vllm.onChat = sayHello;
    const first = await site.here.responses.stream(ask("My name is Ann.")).finalResponse();
    expect(first).toMatchObject({ store: true, output_text: "Hello there." });
    const going = { ...ask("Who am I?"), previous_response_id: first.id };
    const second = await site.there.responses.stream(going).finalResponse();
    expect(second.previous_response_id).toBe(first.id);
    expect(messages()).toMatchObject(talk);
  });

  test("answers calls of functions with their outputs alone", async () => {
    site.vllm.onChat = callTwice;
    const tools = [{ type: "function" as const, name: "get_weather", strict: false, parameters: { type: "object" } }];
    const first = await site.here.responses.create(ask("The weather?", { tools }));
    const input = first.output.flatMap((item) =>
      item.type === "function_call"
        ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "7 degrees" }]
        : [],
    );
    expect(input).toHaveLength(cities.length);
    const going = { model: site.model, input, tools, previous_response_id: first.id };
    expect((await site.there.responses.create(going)).output_text).toBe("Hello there.");
    const { data } = await site.here.responses.inputItems.list(first.id);
    expect(data).toMatchObject([{ type: "message", content: [{ type: "input_text", text: "The weather?" }] }]);
  });

  test("reads a response as it came, also one that was cut short, and is told when it was deleted", async () => {
    site.vllm.onChat = (chat) => {
      chat.say("Hello");
      chat.done({ finishReason: "length" });
    };
    const { _request_id, output_text, ...made } = await site.here.responses.create(ask("Hi", { max_output_tokens: 1 }));
    expect(made).toMatchObject({ status: "incomplete", store: true });
    const { _request_id: _other, output_text: text, ...read } = await site.there.responses.retrieve(made.id);
    expect([read, text]).toEqual([made, output_text]);
    await site.there.responses.delete(made.id);
    const error = await thrownBy(site.here.responses.retrieve(made.id));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ code: "response_not_found" });
    const going = site.here.responses.create(ask("Go on", { previous_response_id: made.id }));
    expect(await thrownBy(going)).toMatchObject({
      status: 404,
      code: "response_not_found",
      param: "previous_response_id",
    });
    expect(await thrownBy(site.here.responses.delete(made.id))).toMatchObject({ status: 404 });
  });

  test("lists the input of a response page by page, in both orders", async () => {
    site.vllm.onChat = sayHello;
    const texts = ["one", "two", "three", "four", "five"];
    const input = texts.map((content) => ({ role: "user" as const, content }));
    const { id } = await site.here.responses.create({ model: site.model, input });
    const listed = async (order: "asc" | "desc"): Promise<string[]> => {
      const items = await Array.fromAsync(site.there.responses.inputItems.list(id, { order, limit: 2 }));
      return items.map((item) => (item.type === "message" && "content" in item ? JSON.stringify(item.content) : ""));
    };
    const parts = texts.map((text) => JSON.stringify([{ type: "input_text", text }]));
    expect(await listed("asc")).toEqual(parts);
    expect(await listed("desc")).toEqual(parts.toReversed());
  });

  test("refers to an item of an earlier response in place of sending it", async () => {
    site.vllm.onChat = sayHello;
    const first = await site.here.responses.create(ask("My name is Ann."));
    const [asked] = (await site.there.responses.inputItems.list(first.id)).data;
    const ids = [asked?.id ?? "", first.output[0]?.id ?? ""];
    const input = ids.map((id) => ({ type: "item_reference" as const, id }));
    await site.there.responses.create({
      model: site.model,
      input: [...input, { role: "user", content: "Who am I?" }],
    });
    expect(messages()).toMatchObject(talk);
  });

  test("has nothing stored that it wants not stored, or that failed", async () => {
    site.vllm.onChat = sayHello;
    const made = await site.here.responses.create(ask("Hello", { store: false }));
    expect(made).toMatchObject({ store: false });
    expect(await thrownBy(site.here.responses.retrieve(made.id))).toMatchObject({ status: 404 });
    site.vllm.onChat = failInTheMiddle;
    let id = "";
    const events = await site.here.responses.create({ ...ask("Hello"), stream: true });
    const failing = (async () => {
      for await (const event of events) if (event.type === "response.created") id = event.response.id;
    })();
    expect(await thrownBy(failing)).toBeInstanceOf(Error);
    expect(id).toMatch(/^resp_/);
    expect(await thrownBy(site.here.responses.retrieve(id))).toMatchObject({ status: 404 });
  });
});
