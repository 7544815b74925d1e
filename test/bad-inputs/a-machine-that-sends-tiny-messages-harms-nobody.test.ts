import { afterAll, beforeAll, expect, test } from "vitest";
import { newMachineKeyPair, parseJoinLine, type MachineKeyPair } from "#shared/protocol/pairing.ts";
import { framesPerSecondMax } from "../../services/gateway/tunnels/frame-rate.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { pairAt } from "../harness/pair-over-http.ts";
import { RawTunnel } from "../harness/raw-tunnel.ts";
import { Site } from "../harness/start-site.ts";
import { trunkline } from "../harness/trunkline-command.ts";

let site: Site;
beforeAll(async () => void (site = await Site.start({ TRUNKLINE_SCRIPTED_MODELS: "scripted" })));
afterAll(() => site[Symbol.asyncDispose]());

async function pair(name: string): Promise<MachineKeyPair & { readonly origin: string }> {
  const line = parseJoinLine(await site.joinLine(name));
  const keyPair = newMachineKeyPair();
  if (line === undefined || (await pairAt(line.origin, line, keyPair)).status !== 200) throw new Error("not paired");
  return { ...keyPair, origin: line.origin };
}

const openTunnel = async (machine: Awaited<ReturnType<typeof pair>>): Promise<RawTunnel> =>
  (await RawTunnel.open(machine.origin)).prove(machine);

/** Bytes of a client's WebSocket: so many frames with one byte each. */
const tinyFrames = (count: number): Buffer => Buffer.from("\x82\x81\0\0\0\0x".repeat(count), "latin1");

test("a machine that sends tiny messages without end is closed, with the reason in log, status and metrics", async () => {
  const machine = await pair("flood");
  await using tunnel = await openTunnel(machine);
  const flood = tinyFrames(framesPerSecondMax / 10);
  const served = site.endpoint.answer({ model: "scripted", says: "/script tokens=2 nonce=x" });
  tunnel.send("PUB tl1.presence.flood 500000\r\n");
  while (tunnel.error === undefined && !tunnel.closed) await tunnel.sendBytes(flood);
  expect(tunnel.error).toBe(
    `Maximum Frames And Commands Exceeded (${framesPerSecondMax} a second, framesPerSecondMax)`,
  );
  expect(await served).toBe("x-0 x-1 ");

  await using again = await openTunnel(machine);
  expect(again.error).toMatch(/^Authorization Violation: too_often for \d+ ms$/);

  expect(await site.up.logged("a machine's connection is closed")).toMatchObject({
    machine: "flood",
    reason: tunnel.error,
  });
  const metrics = await MetricsText.scrape(site.up.operationsUrl);
  expect(metrics.value("trunkline_tunnel_floods_total", { machine: "flood" })).toBe(1);
  const { stdout } = await trunkline(["status", "--json"], {
    TRUNKLINE_STATE_DIR: site.stateDir,
    TRUNKLINE_OPERATIONS_URL: site.up.operationsUrl,
  });
  expect(JSON.parse(stdout).machines).toContainEqual(
    expect.objectContaining({
      machine: "flood",
      why: expect.stringContaining(`its connection was closed: ${tunnel.error}`),
    }),
  );
});
