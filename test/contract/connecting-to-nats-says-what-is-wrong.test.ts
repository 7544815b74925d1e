import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { foundServers, lentOnly } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { startNatsOnFiles } from "../harness/nats-on-files.ts";
import { startNatsServer } from "../harness/nats-server.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { until } from "../harness/until.ts";

const log = createLog({ level: "silent", name: "test" });

/** The one line for the operator; anything but a StartFailure is no such line. */
async function failureOf(options: { url: string; credentialsFile?: string }): Promise<string> {
  const thrown: unknown = await connectNats({ ...options, name: "test", clock, log }).then(
    () => "it connected",
    (error: unknown) => error,
  );
  if (!(thrown instanceof StartFailure)) throw new Error(`no StartFailure but ${String(thrown)}`);
  expect(thrown.message).not.toContain("\n");
  return thrown.message;
}

async function carries(url: string): Promise<boolean> {
  const connection = await connectNats({ url, name: "test", clock, log });
  onTestFinished(() => connection.close());
  await connection.flush();
  return connection.connected;
}

test("an absent server is said to be unreachable, with its URL and the remedy, and no word of credentials", async () => {
  const url = `nats://127.0.0.1:${await freePort()}`;
  const failure = await failureOf({ url });
  expect(failure).toContain(url);
  expect(failure).toMatch(/cannot be reached .*start it there, or set TRUNKLINE_NATS_URL/);
  expect(failure).not.toMatch(/credential|TRUNKLINE_NATS_CREDS/);
});

test("a silent server is said to be unreachable, with its URL and the time, and its connection is ended", async () => {
  const connected = Promise.withResolvers<Socket>();
  await using silent = createServer((socket) => connected.resolve(socket)).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const url = `nats://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const failure = await failureOf({ url });
  expect(failure).toContain(url);
  expect(failure).toMatch(/cannot be reached \(no answer within 5000 ms \(connectTimeoutMs\).*start it there, or set/);
  await until(async () => (await connected.promise).resume().readableEnded, { what: "the connection to end" });
});

test("nothing listens: the password in the URL is not repeated", async () => {
  const port = await freePort();
  const failure = await failureOf({ url: `nats://gateway:opensesame@127.0.0.1:${port}` });
  expect(failure).toContain(`127.0.0.1:${port}`);
  expect(failure).not.toContain("opensesame");
});

test("a credentials file that cannot be read is named", async () => {
  const failure = await failureOf({ url: "nats://127.0.0.1:1", credentialsFile: "/nowhere/gateway.creds" });
  expect(failure).toContain("TRUNKLINE_NATS_CREDS");
  expect(failure).toContain("/nowhere/gateway.creds");
});

describe.skipIf(lentOnly("nats"))("a server with users", () => {
  const password = "p@ss:w/rd %41";
  let server: OwnServer;
  let websocketPort: number;
  beforeAll(async () => {
    websocketPort = await freePort();
    const users = `authorization { users: [{ user: "gate way", password: "${password}" }] }`;
    const websocket = `websocket { listen: "127.0.0.1:${websocketPort}", no_tls: true }`;
    server = await startNatsServer({ extraConfig: `${users}\n${websocket}` });
  });
  afterAll(() => server.stop());
  const as = (user: string, secret: string, address = server.url): string =>
    address.replace("//", `//${encodeURIComponent(user)}:${encodeURIComponent(secret)}@`);

  test("a server with users lets in who stands in the URL", async () => {
    expect(await carries(as("gate way", password))).toBe(true);
  });

  test("a server with users lets in who stands in the URL of a WebSocket", async () => {
    expect(await carries(as("gate way", password, `ws://127.0.0.1:${websocketPort}`))).toBe(true);
  });

  test("a server with users is reached when another of several URLs is dead", async () => {
    const dead = `nats://127.0.0.1:${await freePort()}`;
    expect(await carries(`${as("gate way", password, dead)}, ${server.url}`)).toBe(true);
  });

  test.each([
    ["a wrong password", () => as("gate way", "opensesame")],
    ["an unknown user", () => as("opensesame", password)],
    ["no user at all", () => server.url],
    ["a wrong password over a WebSocket", () => as("gate way", "opensesame", `ws://127.0.0.1:${websocketPort}`)],
  ])("turns away %s, and that is what the failure says", async (_, url) => {
    const failure = await failureOf({ url: url() });
    expect(failure).toMatch(/refuses the credential of this process \(.*authorization/i);
    expect(failure).toContain("TRUNKLINE_NATS_CREDS");
    expect(failure).not.toMatch(/cannot be reached|start it there/);
    expect(failure).not.toContain("opensesame");
    expect(failure).not.toContain(password);
  });
});

describe.skipIf(lentOnly("nats"))("a server that does not fit", () => {
  test("a server that does not fit carries too little: its limit, the setting and what it must be", async () => {
    await using server = await startNatsServer({ maxPayloadBytes: 65_536 });
    const failure = await failureOf({ url: server.url });
    expect(failure).toContain(server.url);
    expect(failure).toMatch(/65536 bytes.*max_payload.*524288/);
  });

  test("a server that does not fit asks for a token, which may stand in the URL", async () => {
    await using server = await startNatsServer({ extraConfig: `authorization { token: "opensesame" }` });
    expect(await carries(server.url.replace("//", "//opensesame@"))).toBe(true);
    expect(await failureOf({ url: server.url })).toMatch(/authorization/i);
  });
});

describe.skipIf(lentOnly("nats") || foundServers().nats.by !== "binary")("a connection that was lost", () => {
  const users = (password: string): string => `authorization { users: [{ user: attic, password: "${password}" }] }`;

  test("a connection that was lost tells a server that refuses its credential from a server that is gone, and nothing once it is back", async () => {
    await using nats = await startNatsOnFiles({ changeable: users("right") });
    const url = nats.server.url.replace("//", "//attic:right@");
    const connection = await connectNats({ url, name: "test", clock, log });
    onTestFinished(() => connection.close());
    expect(connection.trouble).toBeUndefined();
    const tells = (wanted: RegExp | undefined): Promise<unknown> =>
      until(() => (wanted === undefined ? connection.connected : wanted.test(connection.trouble ?? "")), {
        what: `the connection to tell ${wanted}; it tells ${connection.trouble}`,
        timeoutMs: 10_000,
      });
    await nats.reload(users("another"));
    await tells(/^NATS refuses this credential \(TRUNKLINE_NATS_URL, TRUNKLINE_NATS_CREDS\)$/);
    await nats.server.kill();
    await tells(/^NATS cannot be reached$/);
    await nats.reload(users("right")).catch(() => undefined);
    await nats.server.restart();
    await tells(undefined);
    expect(connection.trouble).toBeUndefined();
  });
});
