import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AlarmCall } from "#shared/alerts/alarm.ts";
import type { AlertFormat } from "#shared/alerts/alert-formats.ts";
import { Fault } from "#shared/fault/fault.ts";
import { type AlertRecord, sealAlert } from "#shared/records/alert-record.ts";
import { alertAnswerBytesMax, alertCallMs, AlertSender } from "../../services/gateway/alerts/alert-sender.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";
import { peppers } from "../unit/gateway/keys/keys-of-a-test.ts";

const beganAt = Date.parse("2026-11-30T03:00:00Z");
const secret = `whsec_${randomBytes(32).toString("base64")}`;
const canary = "T0CANARY/in-the-path";
const call: AlarmCall = {
  id: "msg_1",
  state: "began",
  alarm: {
    id: "a1",
    kind: "machine-away",
    subject: "attic",
    beganAt,
    text: "The machine attic <b> [c](d) & @everyone is away.",
  },
  at: beganAt + 120_000,
};

interface Heard {
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}
let server: Server;
let port: number;
let heard: Heard[];
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    heard.push({ headers: request.headers, body: await text(request) });
    answer(response);
  };
  server = createServer((request, response) => void take(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => void server.close());
afterEach(() => server.closeAllConnections());
beforeEach(() => {
  heard = [];
  answer = (response) => void response.writeHead(204).end();
});

interface Setup {
  readonly url?: string;
  readonly format?: AlertFormat;
  readonly hosts?: readonly string[];
  /** The addresses of every name. */
  readonly addresses?: readonly string[];
}

const clock = new TurnableClock({ wallMs: beganAt + 125_500 });

/** Sends a call to a target that was added with the URL, by a gateway with these hosts in TRUNKLINE_ALERT_HOSTS. */
function send({
  url = `http://hooks.test:${port}/${canary}`,
  format = "standard",
  hosts = ["hooks.test"],
  addresses = ["127.0.0.1"],
}: Setup = {}) {
  const sender = new AlertSender({ hosts, peppers, clock, resolve: async () => addresses });
  const sealed = sealAlert("ops", { url, secret }, peppers);
  const { host } = new URL(url);
  const target: AlertRecord = {
    name: "ops",
    host,
    on: ["budget"],
    format,
    sealed,
    version: 1,
    createdAt: 1,
    changedAt: 1,
  };
  return sender.send(target, call, new AbortController().signal);
}

async function refusalOf(sent: Promise<unknown>): Promise<string> {
  const fault = await sent.then(
    () => expect.unreachable("the target took the call"),
    (error: unknown) => Fault.from(error),
  );
  expect(fault.code).toBe("upstream_error");
  expect(JSON.stringify([fault.message, fault.internal, String(fault.cause)])).not.toContain("CANARY");
  return fault.message;
}

test("a call is signed as Standard Webhooks has it, and says what is wrong since when", async () => {
  expect(await send()).toBe(204);
  const [{ headers, body } = expect.unreachable("nothing was sent")] = heard;
  const timestamp = String(headers["webhook-timestamp"]);
  expect([headers["webhook-id"], timestamp]).toEqual(["msg_1", String(Math.floor((beganAt + 125_500) / 1_000))]);
  const [, key = ""] = secret.split("_");
  const expected = createHmac("sha256", Buffer.from(key, "base64"))
    .update(`msg_1.${timestamp}.${body}`)
    .digest("base64");
  expect(headers["webhook-signature"]).toBe(`v1,${expected}`);
  expect(headers["content-type"]).toBe("application/json");
  expect(JSON.parse(body)).toEqual({
    type: "alarm.began",
    timestamp: "2026-11-30T03:02:00.000Z",
    data: {
      alarm: "a1",
      kind: "machine-away",
      subject: "attic",
      text: call.alarm.text,
      began_at: "2026-11-30T03:00:00.000Z",
    },
  });
});

test.each<[AlertFormat, object, unknown]>([
  [
    "slack",
    { "content-type": "application/json" },
    { text: "Trunkline: The machine attic &lt;b&gt; [c](d) &amp; @everyone is away." },
  ],
  [
    "discord",
    { "content-type": "application/json" },
    {
      content: "Trunkline: The machine attic \\<b\\> \\[c\\]\\(d\\) & @everyone is away.",
      allowed_mentions: { parse: [] },
    },
  ],
  ["ntfy", { title: "Trunkline: machine-away", priority: "high" }, "The machine attic <b> [c](d) & @everyone is away."],
  [
    "plain",
    { "content-type": "text/plain; charset=utf-8" },
    "Trunkline: The machine attic <b> [c](d) & @everyone is away.",
  ],
])(
  "a call in the format %s is as that service reads it, mentions nobody and has no signature",
  async (format, headers, body) => {
    await send({ format });
    expect(heard[0]?.headers).toMatchObject({ ...headers, "user-agent": "Trunkline" });
    expect(typeof body === "string" ? heard[0]?.body : JSON.parse(heard[0]?.body ?? "")).toEqual(body);
    expect(heard[0]?.headers["webhook-signature"]).toBeUndefined();
  },
);

describe("a target that does not take a call", () => {
  test.each([500, 404, 304])(
    "a target that answers %i did not take the call, and the reason has the status",
    async (status) => {
      answer = (response) => void response.writeHead(status).end(canary);
      expect(await refusalOf(send())).toContain(
        `ops (hooks.test:${port}) did not take the call: it answers with the status ${status}`,
      );
    },
  );

  test("a target that redirects into the network is not followed", async () => {
    answer = (response) =>
      void response.writeHead(307, { location: `http://127.0.0.1:${port}/inside/${canary}` }).end();
    expect(await refusalOf(send())).toContain("the status 307, and no redirect is followed");
    expect(heard).toHaveLength(1);
  });

  test("a target that never answers is left after five seconds", async () => {
    answer = () => undefined;
    const refusal = refusalOf(send());
    await until(() => heard.length === 1, { what: "the call" });
    clock.advance(alertCallMs);
    expect(await refusal).toContain("no answer came within 5000 ms (alertCallMs)");
  });

  test.each([
    ["nobody who listens", () => ({ url: "http://hooks.test:1/" }), "the connection failed (ECONNREFUSED)"],
    ["no TLS", () => ({ url: `https://hooks.test:${port}/${canary}` }), "the connection failed (E"],
    ["no address", () => ({ addresses: [] }), "the host has no address"],
  ])("a target with %s is told with the code of the error alone", async (_, setup, told) => {
    expect(await refusalOf(send(setup()))).toContain(told);
  });

  test("a target that changes to another protocol did not take the call", async () => {
    answer = ({ socket }) =>
      void socket?.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    expect(await refusalOf(send())).toContain("the connection failed");
  });
});

test("an answer of 10 MB is read up to 64 KB, and its status counts", async () => {
  let written = 0;
  answer = (response) => {
    const piece = Buffer.alloc(65_536);
    const more = (): void => {
      while (written < 10_485_760 && !response.destroyed && response.write(piece)) written += piece.byteLength;
    };
    response.on("drain", more);
    more();
  };
  expect(await send()).toBe(200);
  expect(written).toBeLessThan(10_485_760 / 2);
  expect(alertAnswerBytesMax).toBe(65_536);
});

test.each([
  ["ntfy, *.LAN,10.0.0.5,fd00::5", ["ntfy", "*.lan", "10.0.0.5", "fd00::5"]],
  ["http://ntfy", undefined],
  ["ntfy:80", undefined],
  ["*lan", undefined],
])("the setting TRUNKLINE_ALERT_HOSTS takes names and addresses without a port: %s", (hosts, read) => {
  const config = () => gatewayConfig({ TRUNKLINE_ALERT_HOSTS: hosts }).alertHosts;
  if (read === undefined) expect(config).toThrow("TRUNKLINE_ALERT_HOSTS must be names of hosts");
  else expect(config()).toEqual(read);
});

describe("the address of a target", () => {
  const atPublic = { url: "https://hooks.example/x", hosts: [] };

  test.each([
    ["http://hooks.example/", []],
    ["https://hooks.example:8443/", []],
    ["http://other.test/", ["hooks.test", "*.below.test"]],
  ])(
    "the address of a target needs https and its usual port unless TRUNKLINE_ALERT_HOSTS names the host: %s",
    async (url, hosts) => {
      expect(await refusalOf(send({ url, hosts }))).toContain("TRUNKLINE_ALERT_HOSTS names its host");
    },
  );

  test.each([
    ["10.0.0.1"],
    ["127.0.0.1"],
    ["::1"],
    ["93.184.215.14", "192.168.0.1"],
    ["::ffff:10.0.0.1"],
    ["64:ff9b::a00:1"],
  ])("the address of a target that no setting names must be public, whatever DNS says: %s", async (...addresses) => {
    expect(await refusalOf(send({ ...atPublic, addresses }))).toContain(
      "an address that is not public (TRUNKLINE_ALERT_HOSTS)",
    );
  });

  test.each([
    "169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:169.254.169.254",
    "64:ff9b::169.254.169.254",
    "fd00:ec2::254",
    "100.100.100.200",
  ])(
    "the address of a target is never link-local nor that of a cloud's metadata, also where TRUNKLINE_ALERT_HOSTS names the host: %s",
    async (address) => {
      expect(await refusalOf(send({ addresses: ["127.0.0.1", address] }))).toContain("an address that is link-local");
      expect(await refusalOf(send({ ...atPublic, addresses: [address] }))).toContain("an address that is link-local");
      expect(heard).toEqual([]);
    },
  );

  test.each([
    "http://169.254.169.254/latest",
    "http://0xa9fea9fe/",
    "http://[::ffff:169.254.169.254]/",
    "http://[fe80::1]/",
  ])("the address of a target is judged in the URL itself, also where every host is allowed: %s", async (url) => {
    expect(await refusalOf(send({ url, hosts: ["*"] }))).toContain("an address that is link-local");
  });

  test("the address of a target is looked up once, and the connection goes to the one that was judged", async () => {
    const answers = [["127.0.0.1"], ["169.254.169.254"]];
    const sender = new AlertSender({ hosts: ["*"], peppers, clock, resolve: async () => answers.shift() ?? [] });
    const sealed = sealAlert("ops", { url: `http://hooks.test:${port}/`, secret }, peppers);
    const target: AlertRecord = {
      name: "ops",
      host: "hooks.test",
      on: [],
      format: "plain",
      sealed,
      version: 1,
      createdAt: 1,
      changedAt: 1,
    };
    await sender.send(target, call, new AbortController().signal);
    expect([heard.length, answers.length]).toEqual([1, 1]);
  });
});
