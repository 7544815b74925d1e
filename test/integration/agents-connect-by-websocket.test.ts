import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { tunnelPath } from "#shared/protocol/pairing.ts";
import { routeUpgrades } from "../../services/gateway/http/route-upgrades.ts";
import { AnswersUnderWay } from "../../services/gateway/http/timed-response.ts";
import { answerToUpgrade, handshake, RawTunnel } from "../harness/raw-tunnel.ts";
import { TunnelSite } from "../harness/tunnel-site.ts";
import { until } from "../harness/until.ts";

const toHttp2 = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABk" };

describe("the path of tunnels", () => {
  let site: TunnelSite;
  beforeAll(async () => void (site = await TunnelSite.start()));
  afterAll(() => site[Symbol.asyncDispose]());
  const tunnelUrl = (): string => site.origin + tunnelPath;

  test("the path of tunnels answers a request without an upgrade with 426, and says what may be wrong", async () => {
    for (const headers of [{}, toHttp2]) {
      const answer = await answerToUpgrade(tunnelUrl(), { headers });
      expect(answer.status).toBe(426);
      expect(answer.headers["upgrade"]).toBe("websocket");
      const { error } = JSON.parse(answer.body);
      expect(error).toMatchObject({ code: "upgrade_required", type: "invalid_request_error", param: null });
      expect(error.message).toContain("proxy");
    }
  });

  test("the path of tunnels takes no other method", async () => {
    const answer = await answerToUpgrade(tunnelUrl(), { method: "POST" });
    expect([answer.status, answer.headers["allow"]]).toEqual([405, "GET, HEAD"]);
  });

  test.each([
    ["of another version", { ...handshake, "sec-websocket-version": "12" }],
    ["without a key", { ...handshake, "sec-websocket-key": "" }],
  ])("the path of tunnels refuses a handshake %s with an error like any other", async (_, headers) => {
    const answer = await answerToUpgrade(tunnelUrl(), { headers });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).error.message).toContain("handshake of version 13");
    expect(answer.headers["x-request-id"]).toMatch(/^req_/);
  });

  test("the path of tunnels refuses a head that can be read in two ways", async () => {
    const answer = await answerToUpgrade(tunnelUrl(), {
      headers: { ...handshake, "content-length": "5" },
      body: "hello",
    });
    expect(answer.status).toBe(400);
  });

  test("the path of tunnels tells agents to come again while the gateway has no broker", async () => {
    site.isReady = false;
    onTestFinished(() => void (site.isReady = true));
    const answer = await answerToUpgrade(tunnelUrl());
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toBe("1");
  });

  test("the path of tunnels is one line in the log, with 101, as soon as the tunnel is there", async () => {
    site.logged.length = 0;
    await using tunnel = await RawTunnel.open(site.origin);
    expect(tunnel.info.site).toBe(site.site);
    await until(() => site.logged.length > 0, { what: "the line" });
    expect(JSON.parse(site.logged[0] ?? "")).toMatchObject({ path: tunnelPath, status: 101, outcome: "ok" });
  });

  test("the path of tunnels is the only one where requests become WebSockets", async () => {
    const answer = await answerToUpgrade(`${site.origin}/v1/models`);
    expect(answer.status).toBe(426);
    expect(JSON.parse(answer.body).error.code).toBe("upgrade_refused");
  });
});

describe("a server of Node 22, which cannot decline an upgrade,", () => {
  // A server without `shouldUpgradeCallback` does on every Node what those of Node 22 do.
  const server = createHttpServer(({ method, url, headers: { upgrade, "x-test": own } }, response) => {
    setImmediate(() => response.end(`${method} ${url} ${String(own)} ${upgrade}`));
  });
  const underWay = new AnswersUnderWay();
  server.prependListener("request", ({ socket }, response) => underWay.begin(socket, response));
  routeUpgrades(server, { path: tunnelPath, underWay });
  let origin: string;
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (typeof address !== "object" || address === null) throw new Error("the server does not listen");
    origin = `http://127.0.0.1:${address.port}`;
  });
  afterAll(() => void server.close());

  test("a server of Node 22, which cannot decline an upgrade, serves the request without it", async () => {
    const headers = { ...toHttp2, "x-test": "kept" };
    const answer = await answerToUpgrade(`${origin}/v1/models?x=1`, { headers });
    expect(answer.body).toBe("GET /v1/models?x=1 kept undefined");
  });

  test("a server of Node 22, which cannot decline an upgrade, hands a request for a WebSocket elsewhere on as it came, to be refused at once", async () => {
    const answer = await answerToUpgrade(`${origin}/v1/responses`);
    expect(answer.body).toBe("GET /v1/responses undefined websocket");
  });

  test("a server of Node 22, which cannot decline an upgrade, serves it after the requests before it", async () => {
    const { hostname, port } = new URL(origin);
    const socket = connect({ host: hostname, port: Number(port) });
    onTestFinished(() => void socket.destroy());
    const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\n`;
    socket.write(`GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET ${tunnelPath} HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`);
    let received = "";
    socket.on("data", (bytes) => (received += bytes.toString()));
    await until(() => received.includes(tunnelPath), { what: "the second answer" });
    expect(received.match(/GET \S+/g)).toEqual(["GET /first", `GET ${tunnelPath}`]);
  });
});
