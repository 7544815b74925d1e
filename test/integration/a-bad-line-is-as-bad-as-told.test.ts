import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NatsMessages } from "../harness/nats-messages.ts";
import { TcpProxy, type Inspector } from "../harness/tcp-proxy.ts";
import { until } from "../harness/until.ts";

describe("a proxy", () => {
  let server: Server;
  let at: Socket[];
  beforeEach(async () => {
    at = [];
    server = createServer((socket) => void at.push(socket.on("error", () => undefined)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(() => void server.close());

  async function through(inspect?: () => Inspector) {
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const proxy = await TcpProxy.before(`tcp://127.0.0.1:${port}`, inspect);
    const client = connect({ host: "127.0.0.1", port: proxy.port });
    const got: Buffer[] = [];
    client.on("data", (chunk: Buffer) => void got.push(chunk));
    client.on("error", () => undefined);
    await until(() => at.length === 1, { what: "the connection to be there" });
    return { proxy, client, got, text: () => Buffer.concat(got).toString() };
  }

  test("a proxy passes all on, in its order, also in single bytes that each come late", async () => {
    const { proxy, text } = await through();
    Object.assign(proxy, { sliceBytesMax: 1, latencyMs: 5, jitterMs: 20 });
    proxy.seed(7);
    for (const piece of ["Hello, ", "is anybody ", "there?"]) at[0]?.write(piece);
    await until(() => text() === "Hello, is anybody there?", { what: "all of it" });
    await proxy[Symbol.asyncDispose]();
  });

  test("a proxy lets through no more than its line carries", async () => {
    const { proxy, got } = await through();
    proxy.bytesPerSecond.back = 100_000;
    const begunMs = performance.now();
    for (let times = 0; times < 20; times += 1) at[0]?.write(Buffer.alloc(1_000));
    await until(() => got.reduce((sum, { byteLength }) => sum + byteLength, 0) === 20_000, { what: "all of it" });
    expect(performance.now() - begunMs).toBeGreaterThan(150);
    await proxy[Symbol.asyncDispose]();
  });

  test("a proxy holds from the place on that its inspector names, loses nothing, and makes the sender wait", async () => {
    const { proxy, text } = await through(() => (chunk) => {
      const place = chunk.indexOf("|");
      return place === -1 ? undefined : place;
    });
    at[0]?.write("before|after");
    await until(() => text() === "before", { what: "what comes before it" });
    expect(proxy.bytesWaiting).toBe("|after".length);
    const block = Buffer.alloc(1024 * 1024);
    while (at[0]?.write(block) === true) await until(() => true, { what: "a turn" });
    await until(() => (at[0]?.writableLength ?? 0) > 0, { what: "the sender to wait" });
    proxy.release();
    await until(() => text().startsWith("before|after"), { what: "the rest" });
    await proxy[Symbol.asyncDispose]();
  });

  test("a proxy resets both ends, and while it refuses whoever comes", async () => {
    const { proxy, client } = await through();
    const failure = once(client, "error");
    proxy.reset();
    expect(String((await failure)[0])).toContain("ECONNRESET");
    await until(() => at[0]?.destroyed === true, { what: "the server to see it too" });
    proxy.refuse(true);
    const late = connect({ host: "127.0.0.1", port: proxy.port });
    expect(String((await once(late, "error"))[0])).toContain("ECONNRESET");
    await proxy[Symbol.asyncDispose]();
  });
});

test.each([1, 2, 3, 7, 1_000])("messages of NATS are read whole, from chunks of %i bytes", (bytes) => {
  const spoken =
    "PING\r\nPUB a.b 5\r\nhe\r\no\r\nHPUB c reply 14 16\r\nNATS/1.0\r\n\r\n\r\nhi\r\nMSG d 7 r 0\r\n\r\n-ERR 'x'\r\nHMSG e 8 12 13\r\nNATS/1.0\r\n\r\n!\r\n";
  const messages = new NatsMessages();
  const all = Buffer.from(spoken);
  const seen: ReturnType<NatsMessages["push"]>[number][] = [];
  for (let place = 0; place < all.byteLength; place += bytes) {
    seen.push(...messages.push(all.subarray(place, place + bytes)));
  }
  expect(seen.map(({ subject, reply, payload }) => [subject, reply, payload.toString()])).toEqual([
    ["a.b", undefined, "he\r\no"],
    ["c", "reply", "hi"],
    ["d", "r", ""],
    ["e", undefined, "!"],
  ]);
  // In one chunk each message tells the place where it begins.
  const isBegun = ({ subject, beginsAt }: (typeof seen)[0]): boolean =>
    new RegExp(`^H?(PUB|MSG) ${subject}`).test(spoken.slice(beginsAt));
  if (bytes > spoken.length) expect(seen.every(isBegun)).toBe(true);
});
