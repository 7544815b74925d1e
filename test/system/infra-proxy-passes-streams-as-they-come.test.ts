import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findCaddy, type Proxy, startProxy } from "../harness/infra/start-proxy.ts";
import { model, startStack, type Stack } from "../harness/infra/start-stack.ts";
import { Endpoint, errorOf } from "../harness/endpoint.ts";
import type { FakeOllamaChat } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { until } from "../harness/until.ts";

const caddy = await findCaddy();
const skipped = "reason" in caddy ? caddy.reason : undefined;
if (skipped !== undefined) console.log(`Skipping what runs infra/proxy/Caddyfile: ${skipped}.`);

describe.skipIf(skipped !== undefined || lentOnly("nats", "redis"))("the proxy of infra/ before two gateways", () => {
  let stack: Stack;
  let proxy: Proxy;
  let endpoint: Endpoint;
  beforeAll(async () => {
    stack = await startStack();
    proxy = await startProxy("binary" in caddy ? caddy.binary : "", stack.gateways);
    endpoint = new Endpoint({ baseUrl: `${proxy.url}/v1`, key: stack.endpoints[0]?.key ?? "" });
  });
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });

  /** A stream that has begun and goes on when the test says so. */
  async function openStream(signal?: AbortSignal) {
    const begun = Promise.withResolvers<FakeOllamaChat>();
    stack.ollama.onChat = (chat) => {
      chat.say("Hello ");
      begun.resolve(chat);
    };
    const stream = await endpoint.stream({ model, says: "Hello" }, signal);
    const chat = await begun.promise;
    await until(() => stream.text === "Hello ", { what: "the first piece, while the next is not said yet" });
    return { stream, chat };
  }

  test("each piece of a stream passes as it comes", async () => {
    const { stream, chat } = await openStream();
    chat.say("from far.");
    await until(() => stream.text === "Hello from far.", { what: "the second piece" });
    chat.done();
    expect(await stream.over).toBe("closed");
    expect(stream.done).toBe(true);
  });

  test("a client that leaves stops the machine, on streams and on whole answers", async () => {
    const leaving = new AbortController();
    const { stream, chat } = await openStream(leaving.signal);
    leaving.abort();
    expect(await stream.over).toBe("broken");
    await until(() => chat.request.closedEarly, { what: "the stream to be cancelled on the machine" });

    const asked = Promise.withResolvers<FakeOllamaChat>();
    stack.ollama.onChat = (whole) => asked.resolve(whole);
    const again = new AbortController();
    const answer = endpoint.chat({ model, says: "Hello" }, again.signal);
    const { request } = await asked.promise;
    again.abort();
    await expect(answer).rejects.toThrow(/abort/i);
    await until(() => request.closedEarly, { what: "the whole answer to be cancelled on the machine" });
  });

  test("a body of 20 MB passes, and one of 40 MB is told the gateway's limit", async () => {
    stack.ollama.onChat = (chat) => chat.done();
    const fits = await endpoint.chat({ model, says: "x".repeat(20_000_000) });
    await fits.body?.cancel();
    const tooLarge = await endpoint.chat({ model, says: "x".repeat(40_000_000) });
    expect([fits.status, tooLarge.status]).toEqual([200, 413]);
    expect((await errorOf(tooLarge)).message).toContain("33554432");
  });

  test("the proxy of infra/ before two gateways with a gateway killed every chat goes to the other, and with both the error has the contract's body", async () => {
    const [first, second] = stack.gateways;
    stack.ollama.onChat = (chat) => {
      chat.say("Here.");
      chat.done();
    };
    await first?.kill();
    for (let round = 0; round < 6; round += 1) expect(await endpoint.answer({ model, says: "Hello" })).toBe("Here.");
    await second?.kill();
    const none = await endpoint.chat({ model, says: "Hello" });
    expect([none.status, none.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await errorOf(none)).toMatchObject({ code: "backend_unavailable", type: "service_unavailable_error" });
  });
});
