import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { infraFolder } from "../harness/infra/compose-file.ts";
import { findCaddy, type Proxy, startProxy } from "../harness/infra/start-proxy.ts";
import { model, startStack, type Stack } from "../harness/infra/start-stack.ts";
import { Endpoint, errorOf } from "../harness/endpoint.ts";
import type { FakeOllamaChat } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { until } from "../harness/until.ts";

const caddy = await findCaddy();
const skipped = "reason" in caddy ? caddy.reason : undefined;
if (skipped !== undefined) console.log(`Skipping what runs infra/proxy/Caddyfile: ${skipped}.`);

/** The image's own check, against a gateway's operations port. */
async function healthcheck(operationsUrl: string): Promise<number> {
  const env = { TRUNKLINE_OPERATIONS_PORT: new URL(operationsUrl).port };
  return promisify(execFile)(process.execPath, [join(infraFolder, "healthcheck.ts")], { env }).then(
    () => 0,
    (error: unknown) => (error instanceof Error && "code" in error ? Number(error.code) : -1),
  );
}

describe.skipIf(lentOnly("nats", "redis"))("the processes of infra/compose.yaml, on its configuration files", () => {
  let stack: Stack;
  let proxy: Proxy;
  let endpoint: Endpoint;
  beforeAll(async () => {
    stack = await startStack();
    if (!("binary" in caddy)) return;
    proxy = await startProxy(caddy.binary, stack.gateways);
    endpoint = new Endpoint({ baseUrl: `${proxy.url}/v1`, key: stack.endpoints[0]?.key ?? "" });
  });
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });

  /** A stream that has begun and goes on when the test says so. */
  async function openStream(of: Endpoint, signal?: AbortSignal) {
    const begun = Promise.withResolvers<FakeOllamaChat>();
    stack.ollama.onChat = (chat) => {
      chat.say("Hello ");
      begun.resolve(chat);
    };
    const stream = await of.stream({ model, says: "Hello" }, signal);
    const chat = await begun.promise;
    await until(() => stream.text === "Hello ", { what: "the first piece, while the next is not said yet" });
    return { stream, chat };
  }

  const behindProxy = test.skipIf(skipped !== undefined);

  /** Says the second piece when the first one is there. */
  async function expectPieces(of: Endpoint): Promise<void> {
    const { stream, chat } = await openStream(of);
    chat.say("from far.");
    await until(() => stream.text === "Hello from far.", { what: "the second piece" });
    chat.done();
    expect(await stream.over).toBe("closed");
    expect(stream.done).toBe(true);
  }

  test("a chat streams through each gateway of infra/compose.yaml, piece by piece", async () => {
    for (const gateway of stack.endpoints) await expectPieces(gateway);
  });

  test("a body larger than the broker's messages crosses it", async () => {
    stack.ollama.onChat = (chat) => chat.done();
    const response = await stack.endpoints[0]?.chat({ model, says: "x".repeat(3_000_000) });
    expect(response?.status).toBe(200);
    await response?.body?.cancel();
  });

  test("no process meets a refusal of the broker", async () => {
    for (const process of [...stack.gateways, stack.agent]) {
      const levels = (await process.logLines()).filter(({ level }) => level >= 50);
      expect([process.title, levels]).toEqual([process.title, []]);
    }
  });

  behindProxy("each piece of a stream passes as it comes", () => expectPieces(endpoint));

  behindProxy("a client that leaves stops the machine, on streams and on whole answers", async () => {
    const leaving = new AbortController();
    const { stream, chat } = await openStream(endpoint, leaving.signal);
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

  behindProxy("a body of 20 MB passes, and one of 40 MB is told the gateway's limit", async () => {
    stack.ollama.onChat = (chat) => chat.done();
    const fits = await endpoint.chat({ model, says: "x".repeat(20_000_000) });
    await fits.body?.cancel();
    const tooLarge = await endpoint.chat({ model, says: "x".repeat(40_000_000) });
    expect([fits.status, tooLarge.status]).toEqual([200, 413]);
    expect((await errorOf(tooLarge)).message).toContain("33554432");
  });

  test("the image's check finds a gateway that runs healthy, and one that is gone not", async () => {
    const [gateway] = stack.gateways;
    expect(await healthcheck(gateway?.operationsUrl ?? "")).toBe(0);
    await gateway?.kill();
    expect(await healthcheck(gateway?.operationsUrl ?? "")).toBe(1);
  });

  behindProxy(
    "the proxy of infra/ before two gateways with a gateway killed every chat goes to the other, and with both the error has the contract's body",
    async () => {
      const [, second] = stack.gateways;
      stack.ollama.onChat = (chat) => {
        chat.say("Here.");
        chat.done();
      };
      for (let round = 0; round < 6; round += 1) expect(await endpoint.answer({ model, says: "Hello" })).toBe("Here.");
      await second?.kill();
      const none = await endpoint.chat({ model, says: "Hello" });
      expect([none.status, none.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await errorOf(none)).toMatchObject({ code: "backend_unavailable", type: "service_unavailable_error" });
    },
  );
});
