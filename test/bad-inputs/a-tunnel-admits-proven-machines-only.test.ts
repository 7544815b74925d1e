import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromSeed } from "@nats-io/nkeys";
import { WebSocket } from "ws";
import { connectsPerMinuteMax, newMachineKeyPair, signChallenge, tunnelPath } from "#shared/protocol/pairing.ts";
import { frameBytesMax, unprovenPerNetworkMax } from "../../services/gateway/tunnels/accept-tunnels.ts";
import { unprovenBytesMax } from "../../services/gateway/tunnels/tunnel.ts";
import { answerToUpgrade, RawTunnel } from "../harness/raw-tunnel.ts";
import { TunnelSite } from "../harness/tunnel-site.ts";
import { until } from "../harness/until.ts";

let site: TunnelSite;
let machines = 0;
beforeAll(async () => void (site = await TunnelSite.start()));
afterAll(() => site[Symbol.asyncDispose]());

const pair = (): ReturnType<TunnelSite["pair"]> => site.pair(`machine-${(machines += 1)}`);
const open = (): Promise<RawTunnel> => RawTunnel.open(site.origin);

/** The text with which a tunnel is closed. */
async function refusalOf(tunnel: RawTunnel): Promise<string | undefined> {
  await tunnel.untilClosed();
  expect(site.open.machines).toBe(0);
  return tunnel.error;
}

describe("a proof", () => {
  test.each<[string, (nonce: string, machine: ReturnType<typeof pair>) => string]>([
    [
      "that signs the bare nonce, as clients of NATS do",
      (nonce, { seed }) => Buffer.from(fromSeed(Buffer.from(seed)).sign(Buffer.from(nonce))).toString("base64url"),
    ],
    [
      "made for another site",
      (challenge, { seed }) => signChallenge(seed, { purpose: "connect", site: "B".repeat(22), challenge }),
    ],
    [
      "made for another purpose",
      (challenge, { seed }) => signChallenge(seed, { purpose: "credential", site: site.site, challenge }),
    ],
    [
      "made with another machine's key",
      (challenge) => signChallenge(newMachineKeyPair().seed, { purpose: "connect", site: site.site, challenge }),
    ],
    ["that is no signature", () => "x"],
  ])("%s is refused", async (_, sign) => {
    const machine = pair();
    await using tunnel = await open();
    tunnel.connect({ nkey: machine.publicKey, sig: sign(tunnel.info.nonce, machine) });
    expect(await refusalOf(tunnel)).toBe("Authorization Violation: wrong_proof");
  });

  test("a proof that was good on one connection is refused on the next", async () => {
    const machine = pair();
    await using first = await open();
    const { nonce: challenge } = first.info;
    const sig = signChallenge(machine.seed, { purpose: "connect", site: site.site, challenge });
    first.connect({ nkey: machine.publicKey, sig });
    await first.carriedOut();
    expect(site.open.machines).toBe(1);
    first.socket.close();
    await first.untilClosed();
    await using second = await open();
    second.connect({ nkey: machine.publicKey, sig });
    expect(await refusalOf(second)).toBe("Authorization Violation: wrong_proof");
  });

  test("a proof of an unknown key is refused, and one of a revoked machine too", async () => {
    const unknown = { ...pair(), ...newMachineKeyPair() };
    await using stranger = await open();
    await stranger.prove(unknown);
    expect(await refusalOf(stranger)).toBe("Authorization Violation: machine_unknown");
    const machine = pair();
    await site.revoke(`machine-${machines}`);
    await using revoked = await open();
    await revoked.prove(machine);
    expect(await refusalOf(revoked)).toBe("Authorization Violation: machine_revoked");
  });

  test("a proof is refused for a while after too many of its machine, and wrong proofs of others do not count", async () => {
    const machine = pair();
    for (let count = 0; count <= connectsPerMinuteMax; count += 1) {
      await using stranger = await open();
      stranger.connect({ nkey: machine.publicKey, sig: "x" });
      expect(await refusalOf(stranger)).toBe("Authorization Violation: wrong_proof");
    }
    for (let count = 0; count < connectsPerMinuteMax; count += 1) {
      await using tunnel = await (await open()).prove(machine);
      await tunnel.carriedOut();
    }
    await until(() => site.open.machines === 0, { what: "all tunnels to be gone" });
    await using late = await open();
    await late.prove(machine);
    expect(await refusalOf(late)).toMatch(/^Authorization Violation: too_often for \d+ ms$/);
  });

  test("a proof comes once", async () => {
    const machine = pair();
    await using tunnel = await (await open()).prove(machine);
    tunnel.connect({ nkey: machine.publicKey, sig: "x" });
    expect(await refusalOf(tunnel)).toBe("CONNECT comes once");
  });
});

describe("before its machine is proven, a tunnel", () => {
  test.each([
    ["a subscription", "SUB tl1.rollcall 1\r\n", "Authorization Violation: wrong_proof"],
    ["an empty message", "PUB tl1.rollcall 0\r\n\r\n", "Authorization Violation: wrong_proof"],
    ["a message", "PUB tl1.rollcall 1\r\nx\r\n", "Maximum Payload Violation (0 bytes)"],
    ["a ping", "PING\r\n", "Authorization Violation: wrong_proof"],
    ["a CONNECT that is no JSON", "CONNECT {\r\n", "Authorization Violation: wrong_proof"],
    ["a CONNECT without a key", 'CONNECT {"verbose":false}\r\n', "Authorization Violation: wrong_proof"],
    ["no NATS", "GET / HTTP/1.1\r\n", "Unknown Protocol Operation"],
  ])("closes at %s", async (_, text, refusal) => {
    await using tunnel = await open();
    tunnel.send(text);
    expect(await refusalOf(tunnel)).toBe(refusal);
  });

  test("takes no more bytes than its limit, also within one message that never ends", async () => {
    await using tunnel = await open();
    tunnel.socket.send("C".repeat(unprovenBytesMax), { fin: false, binary: true });
    tunnel.socket.send("C", { fin: false, binary: true });
    expect(await refusalOf(tunnel)).toBe(`Too many bytes before CONNECT (${unprovenBytesMax})`);
  });

  test("has a limited number of others beside it from one network", async () => {
    const tunnels = await Promise.all(Array.from({ length: unprovenPerNetworkMax }, open));
    const refused = await answerToUpgrade(`${site.origin}${tunnelPath}`);
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.body)).toMatchObject({
      error: { code: "server_is_overloaded", message: expect.stringContaining("unprovenPerNetworkMax") },
    });
    await tunnels[0]?.prove(pair());
    await using another = await open();
    expect(another.info.site).toBe(site.site);
    for (const tunnel of tunnels) tunnel.socket.terminate();
    await until(() => site.open.machines === 0, { what: "all tunnels to be gone" });
  });
});

describe("a proven machine's tunnel", () => {
  test("closes at a WebSocket message above its limit, and at text", async () => {
    await using large = await (await open()).prove(pair());
    const codes: number[] = [];
    large.socket.on("close", (code) => codes.push(code));
    large.send(Buffer.alloc(frameBytesMax + 1));
    await refusalOf(large);
    expect(codes).toEqual([1009]);
    await using text = await (await open()).prove(pair());
    text.socket.send("PING\r\n");
    await refusalOf(text);
  });

  test("closes when it opens more subscriptions, or sends more pings, than its limit", async () => {
    await using many = await (await open()).prove(pair());
    many.send(Array.from({ length: 9 }, (_, sid) => `SUB tl1.rollcall ${sid}\r\n`).join(""));
    expect(await refusalOf(many)).toBe("Maximum Subscriptions Exceeded (8)");
    await using pinging = await (await open()).prove(pair());
    pinging.send("PING\r\n".repeat(65));
    expect(await refusalOf(pinging)).toBe("Maximum Pings Exceeded (64)");
    await using twice = await (await open()).prove(pair());
    twice.send("SUB tl1.rollcall 1\r\nSUB tl1.rollcall 1\r\n");
    expect(await refusalOf(twice)).toContain("Parser Error");
  });
});

test("a machine that is not there any more leaves nothing behind", async () => {
  const socket = new WebSocket(`${site.origin.replace("http", "ws")}${tunnelPath}`);
  socket.on("error", () => undefined);
  socket.terminate();
  await using tunnel = await (await open()).prove(pair());
  expect(site.open.machines).toBe(1);
  tunnel.socket.terminate();
  await until(() => site.open.machines === 0, { what: "the tunnel to be gone" });
});
