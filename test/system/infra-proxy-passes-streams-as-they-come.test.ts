import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { infraFolder } from "../harness/infra/compose-file.ts";
import { model, startStack, type Stack } from "../harness/infra/start-stack.ts";
import { Endpoint, errorOf } from "../harness/endpoint.ts";
import type { FakeOllamaChat } from "../harness/fake-ollama.ts";
import { findBinary } from "../harness/find-binary.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { until } from "../harness/until.ts";

/** `health_fails`, and statuses after `handle_errors`, are not known to earlier ones such as Debian 12's. */
const caddyNeeded = { major: 2, minor: 8 };

/** Why this Caddy cannot run the file; undefined when it can, or does not tell its version. */
async function whySkipped(binary: string | undefined): Promise<string | undefined> {
  if (binary === undefined) return "there is no caddy on the PATH";
  const { stdout: told } = await promisify(execFile)(binary, ["version"]);
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(told) ?? [];
  const isNewEnough =
    Number(major) > caddyNeeded.major || (Number(major) === caddyNeeded.major && Number(minor) >= caddyNeeded.minor);
  if (major === undefined || isNewEnough) return undefined;
  return `it needs Caddy ${caddyNeeded.major}.${caddyNeeded.minor} or newer, and the one on the PATH is ${told.trim()}`;
}

const caddy = await findBinary("caddy");
const skipped = await whySkipped(caddy);
if (skipped !== undefined) console.log(`Skipping what runs infra/proxy/Caddyfile: ${skipped}.`);

const startsWithinMs = 10_000;

/** The proxy with its configuration as it is, in front of these gateways. */
async function startProxy(binary: string, gateways: Stack["gateways"]): Promise<OwnedChild & { url: string }> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const addresses = gateways.map(({ baseUrl }) => new URL(baseUrl).host);
  const admin = `127.0.0.1:${await freePort()}`;
  const environment = { SITE_ADDRESS: url, GATEWAYS: addresses.join(" "), CADDY_ADMIN: admin, HOME: "." };
  const args = ["run", "--adapter", "caddyfile", "--config", join(infraFolder, "proxy/Caddyfile")];
  const child = await OwnedChild.start({ binary, args, environment });
  const answers = async (): Promise<boolean> => (await fetch(`${url}/healthz`)).status === 200;
  try {
    await until(answers, { what: "the proxy to answer", timeoutMs: startsWithinMs });
    return Object.assign(child, { url });
  } catch (error) {
    const said = await child.stderr();
    await child[Symbol.asyncDispose]();
    throw new Error(`${String(error)}; it said:\n${said}`, { cause: error });
  }
}

describe.skipIf(skipped !== undefined || lentOnly("nats", "redis"))("the proxy of infra/ before two gateways", () => {
  let stack: Stack;
  let proxy: OwnedChild;
  let endpoint: Endpoint;
  beforeAll(async () => {
    stack = await startStack();
    const started = await startProxy(caddy ?? "", stack.gateways);
    proxy = started;
    endpoint = new Endpoint({ baseUrl: `${started.url}/v1`, key: stack.endpoints[0]?.key ?? "" });
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

  test("with a gateway killed every chat goes to the other, and with both the error has the contract's body", async () => {
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
