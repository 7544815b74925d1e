import { execFile } from "node:child_process";
import { connect, createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import type { NatsSecurity } from "#shared/broker/nats-security.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { lentOnly, foundServers } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { makeNatsCertificates, type NatsCertificates } from "../harness/self-signed.ts";
import { startNatsServer } from "../harness/nats-server.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { ownNetworkAddress, RecordingBroker } from "../harness/recording-broker.ts";
import { until } from "../harness/until.ts";

const log = createLog({ level: "silent", name: "test" });
const elsewhere = ownNetworkAddress();
const users = `authorization { users: [{ user: "attic", password: "secret" }] }`;

async function open(url: string, security?: NatsSecurity): Promise<Broker> {
  const broker = await connectNats({ url, security, name: "test", clock, log });
  onTestFinished(() => broker.close());
  await broker.flush();
  return broker;
}

/** The line for the operator, or that it connected. */
function outcome(url: string, security?: NatsSecurity): Promise<string> {
  return open(url, security).then(
    () => "connected",
    (error: unknown) => {
      if (error instanceof StartFailure) return error.message;
      throw error;
    },
  );
}

/** The server's port on an address that is not loopback. */
async function reachedFromElsewhere(port: number): Promise<string> {
  const relay = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    client.on("error", () => server.destroy()).pipe(server);
    server.on("error", () => client.destroy()).pipe(client);
  });
  relay.listen(0, elsewhere);
  await once(relay, "listening");
  onTestFinished(() => void relay.close());
  const address = relay.address();
  return `${elsewhere}:${typeof address === "object" ? address?.port : ""}`;
}

describe.skipIf(lentOnly("nats"))("a NATS server with TLS", () => {
  let certificates: NatsCertificates;
  let server: OwnServer;
  let websocketPort: number;
  beforeAll(async () => {
    certificates = await makeNatsCertificates();
    websocketPort = await freePort();
    const websocket = `websocket { listen: "127.0.0.1:${websocketPort}", ${certificates.config} }`;
    server = await startNatsServer({
      extraConfig: [certificates.config, users, websocket].join("\n"),
      files: certificates.files,
    });
  });
  afterAll(() => server.stop());
  const at = (place: string, scheme = "tls"): string => `${scheme}://attic:secret@${place}`;

  test("a NATS server with TLS carries messages when TRUNKLINE_NATS_CA names its authority, by name and by address", async () => {
    const { caFile } = certificates;
    for (const host of ["127.0.0.1", "localhost"]) {
      const broker = await open(at(`${host}:${server.port}`), { caFile });
      const heard: string[] = [];
      broker.subscribe("greeting", ({ data }) => heard.push(Buffer.from(data).toString()));
      broker.publish("greeting", Buffer.from("hello"));
      await broker.flush();
      expect(heard).toEqual(["hello"]);
    }
  });

  test("a NATS server with TLS is refused without its authority, and the line names the setting", async () => {
    expect(await outcome(at(`127.0.0.1:${server.port}`))).toMatch(/unknown authority .*set TRUNKLINE_NATS_CA/);
  });

  test("a NATS server with TLS is refused with another authority of the same name", async () => {
    const { caFile } = await makeNatsCertificates();
    expect(await outcome(at(`127.0.0.1:${server.port}`), { caFile })).toMatch(/unknown authority|cannot be used/);
  });

  test.skipIf(elsewhere === undefined)(
    "a NATS server with TLS is refused at an address that its certificate does not name, although it names localhost",
    async () => {
      const place = await reachedFromElsewhere(server.port);
      const { caFile } = certificates;
      expect(await outcome(at(place), { caFile })).toMatch(/a certificate for other names .*infra\/nats-ca\.sh/);
    },
  );

  // The port for WebSockets is open inside a container only.
  test.skipIf(foundServers().nats.by === "docker")(
    "a NATS server with TLS is used over wss:// with the file of its authority, and refused without",
    async () => {
      const { caFile } = certificates;
      expect(await outcome(at(`localhost:${websocketPort}`, "wss"), { caFile })).toBe("connected");
      expect(await outcome(at(`localhost:${websocketPort}`, "wss"))).toMatch(/cannot be reached/);
    },
  );

  test("a NATS server with TLS gets no password of a client that it left when it comes back without TLS", async () => {
    const { caFile, config, files } = certificates;
    const first = await startNatsServer({ extraConfig: `${config}\n${users}`, files });
    const broker = await open(at(first.url.replace("nats://", "")), { caFile });
    await first.stop();
    await using second = await RecordingBroker.start({}, { port: first.port });
    await until(() => second.clients > 1, { what: "the client to look for its server twice" });
    expect([second.received, broker.connected]).toEqual(["", false]);
  });

  test("a NATS server with TLS passes on nothing that somebody on the line puts before the TLS handshake of a reconnect", async () => {
    const { caFile } = certificates;
    const planted = (sid: number): string => `MSG jobs ${sid} 4\r\nevil\r\n`;
    let plants = 0;
    const line = createServer((client) => {
      const far = connect(server.port, "127.0.0.1");
      far.once("data", (greeting) => {
        const more = plants > 0 ? Array.from({ length: 20 }, (_, sid) => planted(sid)).join("") : "";
        plants += 1;
        client.write(`${String(greeting)}${more}`);
        far.pipe(client);
        client.pipe(far);
      });
      hangUps.push(() => client.destroy());
      client.on("error", () => client.destroy()).on("close", () => far.destroy());
      far.on("error", () => far.destroy()).on("close", () => client.destroy());
    });
    const hangUps: (() => void)[] = [];
    line.listen(0, "127.0.0.1");
    await once(line, "listening");
    onTestFinished(() => void line.close());
    const address = line.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const broker = await open(at(`localhost:${port}`), { caFile });
    const heard: string[] = [];
    broker.subscribe("jobs", ({ data }) => heard.push(Buffer.from(data).toString()));
    await broker.flush();
    const back = Promise.withResolvers<void>();
    broker.onChange((connected) => connected && back.resolve());
    for (const hangUp of hangUps) hangUp();
    await back.promise;
    broker.publish("jobs", Buffer.from("good"));
    await broker.flush();
    // The connection before the first one only looks whether the server speaks.
    expect([plants, heard]).toEqual([3, ["good"]]);
  });

  test("a NATS server with TLS verifies the certificate that TRUNKLINE_NATS_CERT and TRUNKLINE_NATS_KEY name", async () => {
    const { caFile, certificateFile, keyFile, files } = certificates;
    const folder = join(caFile, "..");
    const own = { certificateFile: join(folder, "client.pem"), keyFile: join(folder, "client.key") };
    const selfSigned = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=attic"];
    await promisify(execFile)("openssl", [...selfSigned, "-keyout", own.keyFile, "-out", own.certificateFile]);
    const verify = `tls { cert_file: "${certificateFile}", key_file: "${keyFile}", ca_file: "${own.certificateFile}", verify: true }`;
    await using verifying = await startNatsServer({ extraConfig: verify, files: [...files, own.certificateFile] });
    const url = `tls://localhost:${verifying.port}`;
    expect(await outcome(url, { caFile, ...own })).toBe("connected");
    expect(await outcome(url, { caFile })).toMatch(/cannot be reached/);
    expect(await outcome(url, { caFile, keyFile: own.keyFile })).toMatch(/belong together/);
  });

  test("a NATS server with TLS is named with the setting when a file cannot be read", async () => {
    const said = await outcome(at(`localhost:${server.port}`), { caFile: "/nowhere/ca.pem" });
    expect(said).toMatch(/^TRUNKLINE_NATS_CA: the file \/nowhere\/ca\.pem cannot be read/);
  });

  describe.skipIf(elsewhere === undefined)("on an address that is not loopback", () => {
    test("a NATS server with TLS on an address that is not loopback carries messages when it has users, whatever the scheme", async () => {
      const reachable = await makeNatsCertificates(elsewhere ?? "");
      await using there = await startNatsServer({
        extraConfig: `${reachable.config}\n${users}`,
        files: reachable.files,
      });
      const place = await reachedFromElsewhere(there.port);
      for (const scheme of ["tls", "nats"]) {
        expect(await outcome(at(place, scheme), { caFile: reachable.caFile })).toBe("connected");
      }
    });

    test("a NATS server with TLS on an address that is not loopback is refused when it admits clients without a password", async () => {
      const reachable = await makeNatsCertificates(elsewhere ?? "");
      await using there = await startNatsServer({ extraConfig: reachable.config, files: reachable.files });
      const place = await reachedFromElsewhere(there.port);
      const { caFile } = reachable;
      expect(await outcome(at(place), { caFile })).toMatch(/admits clients without a password: .*Give it users/);
      expect(await outcome(at(place), { caFile, insecure: true })).toBe("connected");
    });
  });
});
