import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import type { MachineKeyPair } from "#shared/protocol/pairing.ts";
import { RawTunnel } from "../harness/raw-tunnel.ts";
import { TunnelSite } from "../harness/tunnel-site.ts";
import { until } from "../harness/until.ts";

let site: TunnelSite;
let gateway: Broker;
let attic: MachineKeyPair;
beforeAll(async () => {
  site = await TunnelSite.start();
  gateway = site.broker.connect();
  attic = site.pair("attic");
  site.pair("cellar");
});
afterAll(() => site[Symbol.asyncDispose]());

const inTunnel = async (): Promise<RawTunnel> => (await RawTunnel.open(site.origin)).prove(attic);
const job = "tl1.machine.cellar.1.job";

test.each([
  ">",
  "*",
  "$SYS.>",
  "_INBOX.>",
  "tl1.>",
  "tl1.reply.>",
  "tl1.reply.*.attic.>",
  "tl1.presence.*",
  "tl1.presence.cellar",
  "tl1.machine.>",
  "tl1.machine.*.1.job",
  "tl1.machine.cellar.>",
  job,
  "tl1.machine.attic",
  "tl1.tunnel.attic",
  "tl1.placed.*",
  "tl1.placed.gggggggggggggggggggggg",
])("a paired machine hears nothing on %s", async (pattern) => {
  await using tunnel = await inTunnel();
  tunnel.send(`SUB ${pattern} 1\r\n`);
  await tunnel.carriedOut();
  expect(tunnel.error).toBe(`Permissions Violation for Subscription to "${pattern}"`);
  for (const subject of [job, "tl1.reply.g.cellar.j", "tl1.presence.cellar", "$SYS.x", "_INBOX.x"]) {
    gateway.publish(subject, Buffer.from("another's"));
  }
  gateway.publish("tl1.machine.attic.1.job", Buffer.from("its own, without a subscription"));
  await gateway.flush();
  await tunnel.carriedOut();
  expect(tunnel.received).not.toContain("MSG ");
});

test.each([
  ["a job of another machine", "tl1.machine.cellar.1.job"],
  ["a job of its own", "tl1.machine.attic.1.job"],
  ["an answer in the name of another machine", "tl1.reply.gateway.cellar.job"],
  ["another machine's presence", "tl1.presence.cellar"],
  ["a roll call", "tl1.rollcall"],
  ["an answer to somebody else's request", "_INBOX.abc"],
  ["a message to the broker itself", "$SYS.REQ.SERVER.PING"],
  ["news of a tunnel", "tl1.tunnel.attic"],
  ["news of a gateway's placements", "tl1.placed.gggggggggggggggggggggg"],
])("a paired machine cannot send %s", async (_, subject) => {
  const heard: string[] = [];
  // The gateway's own news of the tunnel are longer than all that the machine sends here.
  const listening = gateway.subscribe(">", (message) => {
    if (message.data.byteLength <= 1) heard.push(message.subject);
  });
  onTestFinished(() => listening.end());
  await using tunnel = await inTunnel();
  tunnel.send(`PUB ${subject} 1\r\nx\r\nPUB tl1.presence.attic 0\r\n\r\n`);
  await tunnel.carriedOut();
  expect(tunnel.error).toBe(`Permissions Violation for Publish to "${subject}"`);
  await until(() => heard.length > 0, { what: "the message that is allowed" });
  expect(heard).toEqual(["tl1.presence.attic"]);
});

test("a paired machine cannot name another machine's subject for the broker's own answers", async () => {
  await using tunnel = await inTunnel();
  tunnel.send(`PUB tl1.presence.attic ${job} 0\r\n\r\n`);
  await tunnel.carriedOut();
  expect(tunnel.error).toBe(`Permissions Violation for Publish to "${job}"`);
});

test("a paired machine may do what its work needs, and is told at once that a gateway is gone", async () => {
  await using tunnel = await inTunnel();
  tunnel.send("SUB tl1.machine.attic.1.> 1\r\nSUB tl1.presence.attic 2\r\nSUB tl1.rollcall 3\r\n");
  tunnel.send("PUB tl1.reply.gone.attic.beats tl1.machine.attic.1.echo.gone 4\r\nbeat\r\n");
  await tunnel.carriedOut();
  gateway.publish("tl1.machine.attic.1.job", Buffer.from("work"), { headers: { "tl-job": "1" } });
  gateway.publish("tl1.rollcall", new Uint8Array());
  await until(() => tunnel.received.includes("tl1.rollcall"), { what: "the roll call" });
  expect(tunnel.error).toBeUndefined();
  expect(tunnel.received.replace(/(?:INFO.*|PONG)\r\n/g, "")).toBe(
    [
      "HMSG tl1.machine.attic.1.echo.gone 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
      "HMSG tl1.machine.attic.1.job 1 23 27\r\nNATS/1.0\r\ntl-job: 1\r\n\r\nwork\r\n",
      "MSG tl1.rollcall 3 0\r\n\r\n",
    ].join(""),
  );
});
