import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { createServer as createTcpServer, type AddressInfo, type Server } from "node:net";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connectTunnel, type TunnelOptions } from "#shared/site/nats-tunnel.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { startCompanyProxy } from "../harness/company-proxy.ts";
import { freePort } from "../harness/free-port.ts";
import { makeNatsCertificates } from "../harness/self-signed.ts";
import { TunnelSite } from "../harness/tunnel-site.ts";

const log = createLog({ level: "silent", name: "test" });

async function startSite(options: Parameters<typeof TunnelSite.start>[0] = {}): Promise<TunnelSite> {
  const site = await TunnelSite.start(options);
  onTestFinished(() => site[Symbol.asyncDispose]());
  return site;
}

/** The one line for the person who starts the agent. */
async function failureOf(paired: Omit<TunnelOptions, "clock" | "log">): Promise<StartFailure> {
  const thrown: unknown = await connectTunnel({ ...paired, clock, log }).then(
    () => "it connected",
    (error: unknown) => error,
  );
  if (!(thrown instanceof StartFailure)) throw new Error(`no StartFailure but ${String(thrown)}`);
  expect(thrown.message).not.toContain("\n");
  expect(thrown.message).toContain(paired.origin);
  return thrown;
}

/** Listens in place of a site, and returns its origin. */
async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("a tunnel that cannot be opened says why:", () => {
  test("the site is not there", async () => {
    const paired = (await startSite()).pair("attic");
    const failure = await failureOf({ ...paired, origin: `http://127.0.0.1:${await freePort()}` });
    expect(failure.message).toMatch(/cannot be reached \(ECONNREFUSED\): check the address/);
    expect(failure.exitCode).toBe(exitCodes.unavailable);
  });

  test("the site takes the connection and says nothing", async () => {
    const paired = (await startSite()).pair("attic");
    const origin = await listening(createTcpServer((socket) => onTestFinished(() => void socket.destroy())));
    const failure = await failureOf({ ...paired, origin });
    expect(failure.message).toMatch(/cannot be reached \(.*handshake has timed out\)/);
  });

  test.each([
    [404, /does not answer as a Trunkline site \(HTTP 404 .*let proxies in front pass WebSockets on/],
    [426, /does not answer as a Trunkline site \(HTTP 426/],
    [502, /does not serve machines just now \(HTTP 502\): try again/],
  ])("something else than a gateway answers with %i", async (status, message) => {
    const paired = (await startSite()).pair("attic");
    const origin = await listening(createHttpServer((_, response) => response.writeHead(status).end()));
    expect((await failureOf({ ...paired, origin })).message).toMatch(message);
  });

  test("the gateway has lost its broker", async () => {
    const site = await startSite();
    site.isReady = false;
    expect((await failureOf(site.pair("attic"))).message).toContain("(HTTP 503): try again");
  });

  test("the gateway cannot connect the machine to its broker", async () => {
    const site = await startSite({ brokerFor: () => Promise.reject(new Error("no broker")) });
    const failure = await failureOf(site.pair("attic"));
    expect(failure.message).toContain("cannot serve this machine just now");
    expect(failure.exitCode).toBe(exitCodes.unavailable);
  });

  test("the machine connected too often, with the limit and the time after which it may", async () => {
    const site = await startSite();
    const paired = site.pair("attic");
    while (site.rate.take(paired.publicKey) === 0);
    const failure = await failureOf(paired);
    expect(failure.message).toMatch(/admits 30 connects .*\(connectsPerMinuteMax\).* again in [12] s/);
    expect(failure.exitCode).toBe(exitCodes.unavailable);
  });

  test("the machine is unknown, or was revoked: for good", async () => {
    const site = await startSite();
    const paired = site.pair("attic");
    const unknown = await failureOf({ ...paired, ...newMachineKeyPair() });
    expect(unknown.message).toMatch(/does not know this machine.*trunkline machines pair/);
    await site.revoke("attic");
    const revoked = await failureOf(paired);
    expect(revoked.message).toMatch(/has revoked this machine.*trunkline machines pair/);
    expect([unknown.exitCode, revoked.exitCode]).toEqual([exitCodes.config, exitCodes.config]);
  });

  test("another site answers at its URL", async () => {
    const failure = await failureOf({ ...(await startSite()).pair("attic"), site: "B".repeat(22) });
    expect(failure.message).toContain("another site answers there now");
  });
});

describe("a site with a certificate", () => {
  let tls: { readonly cert: Buffer; readonly key: Buffer };
  let ca: Buffer;
  beforeAll(async () => {
    const files = await makeNatsCertificates("127.0.0.1");
    tls = { cert: readFileSync(files.certificateFile), key: readFileSync(files.keyFile) };
    ca = readFileSync(files.caFile);
  });

  test("a site with a certificate is trusted by the authority that the agent names", async () => {
    const site = await startSite({ tls });
    const tunnel = await connectTunnel({ ...site.pair("attic", { ca }), clock, log });
    onTestFinished(() => tunnel.close());
    expect(tunnel.machine).toBe("attic");
  });

  test("a site with a certificate is reached through the proxy of a company, whose refusal is explained", async () => {
    const site = await startSite({ tls });
    await using proxy = await startCompanyProxy();
    const agent = new HttpsAgent({ ca, proxyEnv: { HTTPS_PROXY: proxy.url } });
    const paired = { ...site.pair("attic"), agent };
    const tunnel = await connectTunnel({ ...paired, clock, log });
    onTestFinished(() => tunnel.close());
    expect(proxy.hosts).toEqual([new URL(site.origin).host]);
    proxy.refuses = true;
    expect((await failureOf(paired)).message).toContain("proxy of HTTPS_PROXY does not pass");
  });

  test("a site with a certificate of an unknown authority gets no proof", async () => {
    const site = await startSite({ tls });
    const failure = await failureOf({ ...site.pair("attic"), agent: new HttpsAgent() });
    expect(failure.message).toMatch(/a certificate of an unknown authority/);
    expect(site.logged).toEqual([]);
  });

  test("a site with a certificate for other names is refused", async () => {
    // An address of this host that is in no certificate.
    const site = await startSite({ tls, host: "127.0.0.2" });
    const failure = await failureOf(site.pair("attic", { ca }));
    expect(failure.message).toMatch(/a certificate for other names/);
  });
});
