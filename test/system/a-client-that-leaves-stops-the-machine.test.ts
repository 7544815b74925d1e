import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FakeOllama, type FakeOllamaChat } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

/** From the client's socket through gateway, broker and agent to the runtime's own socket. */
const reachesWithinMs = 2_000;

describe.skipIf(lentOnly("nats", "redis"))("a client that leaves closes the request at the runtime", () => {
  let ollama: FakeOllama;
  let fleet: Fleet;
  beforeAll(async () => {
    ollama = await FakeOllama.start({ models: [{ name: "llama3.2:latest" }] });
    const env = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url, TRUNKLINE_SLOTS: "1" };
    fleet = await startFleet({ machines: { attic: { env } } });
    await fleet.endpoint.untilListed("llama3.2");
  });
  afterAll(async () => {
    await fleet[Symbol.asyncDispose]();
    await ollama.stop();
  });

  let before: number;
  beforeEach(() => {
    before = ollama.requestsTo("/api/chat").length;
  });

  const chat = { model: "llama3.2", says: "Hello" };
  const asked = () => ollama.requestsTo("/api/chat").slice(before);
  const atRuntime = () => until(() => asked()[0], { what: "the request at the runtime" });
  const closed = (request: { closedEarly: boolean }) =>
    until(() => request.closedEarly, { what: "the runtime's request to be closed", timeoutMs: reachesWithinMs });

  test("a client that leaves closes the request at the runtime in the middle of a stream", async () => {
    ollama.onChat = (answer) => answer.say("first");
    const leaving = new AbortController();
    const stream = await fleet.endpoint.stream(chat, leaving.signal);
    const request = await atRuntime();
    await until(() => stream.text === "first", { what: "the first token" });
    expect(request.closedEarly).toBe(false);
    leaving.abort();
    await closed(request);
  });

  test.each([true, false])(
    "a client that leaves closes the request at the runtime while the runtime is still silent, with stream %s",
    async (stream) => {
      ollama.onChat = () => {};
      const leaving = new AbortController();
      const answer = fleet.endpoint.chat({ ...chat, stream }, leaving.signal).catch(() => "left");
      const request = await atRuntime();
      leaving.abort();
      expect(await answer).toBe("left");
      await closed(request);
    },
  );

  test("a client that leaves closes the request at the runtime in the middle of a whole answer, and the slot is free for the next", async () => {
    ollama.onChat = (answer) => answer.say("first");
    const leaving = new AbortController();
    const answer = fleet.endpoint.chat(chat, leaving.signal).catch(() => "left");
    const request = await atRuntime();
    const waiting = fleet.endpoint.answer(chat);
    expect(asked()).toHaveLength(1);
    ollama.onChat = (next) => {
      next.say("next");
      next.done();
    };
    leaving.abort();
    expect(await answer).toBe("left");
    await closed(request);
    expect(await waiting).toBe("next");
  });

  test("a client that leaves closes the request at the runtime while it waits in the machine's queue, before the runtime ever hears of it", async () => {
    const begun: FakeOllamaChat[] = [];
    ollama.onChat = (answer) => {
      begun.push(answer);
      answer.say("first");
    };
    const first = await fleet.endpoint.stream({ ...chat, says: "takes the slot" });
    await until(() => first.text === "first", { what: "the slot to be taken" });
    const leaving = new AbortController();
    const left = fleet.endpoint.chat({ ...chat, says: "leaves" }, leaving.signal).catch(() => "left");
    const stays = fleet.endpoint.answer({ ...chat, says: "stays" });
    leaving.abort();
    expect(await left).toBe("left");
    ollama.onChat = (answer) => answer.done();
    begun[0]?.done();
    expect(await stays).toBe("");
    expect(asked().map(({ body }) => JSON.stringify(body["messages"]))).toEqual([
      expect.stringContaining("takes the slot"),
      expect.stringContaining("stays"),
    ]);
  });
});
