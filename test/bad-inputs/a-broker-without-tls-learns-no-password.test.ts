import { describe, expect, onTestFinished, test } from "vitest";
import { connectNats } from "#shared/broker/nats-broker.ts";
import type { NatsSecurity } from "#shared/broker/nats-security.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { ownNetworkAddress, RecordingBroker } from "../harness/recording-broker.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const log = createLog({ level: "silent", name: "test" });
const elsewhere = ownNetworkAddress();
const secret = "opensesame";

/** The line for the operator, or that it connected. */
async function outcome(url: string, security?: NatsSecurity): Promise<string> {
  try {
    const broker = await connectNats({ url, security, name: "test", clock, log });
    onTestFinished(() => broker.close());
    return "connected";
  } catch (error) {
    if (error instanceof StartFailure) return `${error.exitCode}: ${error.message}`;
    throw error;
  }
}

async function recording(greeting: Record<string, unknown>, host?: string): Promise<RecordingBroker> {
  const broker = await RecordingBroker.start(greeting, { host });
  onTestFinished(() => broker[Symbol.asyncDispose]());
  return broker;
}

test.each([
  ["an agent", "agent"],
  ["a gateway", "gateway"],
])(
  "a broker that does not speak TLS gets nothing from %s whose URL begins with tls://, which says so and does not start",
  async (_, command) => {
    const broker = await recording({ auth_required: true });
    const { exitCode, stderr } = await trunkline([command], {
      TRUNKLINE_NATS_URL: `tls://attic:${secret}@${broker.place}`,
      TRUNKLINE_MACHINE: "attic",
      TRUNKLINE_RUNTIME: "scripted",
      TRUNKLINE_PORT: "0",
      TRUNKLINE_OPERATIONS_PORT: "0",
    });
    expect([exitCode, broker.received]).toEqual([69, ""]);
    expect(stderr).toMatch(/^trunkline: NATS at tls:\/\/127.* does not offer TLS, so no credential was sent/m);
    expect(stderr).not.toContain(secret);
  },
);

test("a broker that does not speak TLS never sees the password when it only claims to speak TLS", async () => {
  const broker = await recording({ tls_required: true, tls_available: true });
  await outcome(`tls://attic:${secret}@${broker.place}`);
  expect(broker.clients).toBeGreaterThan(0);
  expect(broker.received).not.toContain("CONNECT");
});

test("a broker that does not speak TLS gets nothing from a client that has a file of a certificate authority, whatever the scheme", async () => {
  const broker = await recording({});
  const said = await outcome(`nats://attic:${secret}@${broker.place}`, { caFile: import.meta.filename });
  expect(said).toMatch(/^69: .* does not offer TLS/);
  expect(broker.received).toBe("");
});

test("a broker that does not speak TLS is used on loopback when the URL begins with nats://", async () => {
  const broker = await recording({});
  expect(await outcome(`nats://attic:${secret}@${broker.place}`)).toBe("connected");
});

test("a broker that does not speak TLS learns no password when a server on loopback announces it as another of its cluster", async () => {
  const stranger = await recording({});
  const known = await recording({ connect_urls: [stranger.place] });
  expect(await outcome(`nats://attic:${secret}@${known.place}`)).toBe("connected");
  known.hangUp();
  await until(() => known.clients + stranger.clients > 1, { what: "the client to connect again" });
  expect([stranger.received, known.clients]).toEqual(["", 2]);
});

describe.skipIf(elsewhere === undefined)("a broker on an address that is not loopback", () => {
  const there = (greeting: Record<string, unknown> = {}): Promise<RecordingBroker> => recording(greeting, elsewhere);

  test("a broker on an address that is not loopback without TLS gets nothing, also when the URL begins with nats://", async () => {
    const broker = await there({ auth_required: true });
    const said = await outcome(`nats://attic:${secret}@${broker.place}`);
    expect(said).toMatch(/^69: .* does not offer TLS.*TRUNKLINE_NATS_INSECURE=true/);
    expect(broker.received).toBe("");
  });

  test("a broker on an address that is not loopback is not asked at all without a credential", async () => {
    const broker = await there();
    expect(await outcome(`tls://${broker.place}`)).toMatch(/^78: .*without a credential.*TRUNKLINE_NATS_CREDS/);
    expect(broker.clients).toBe(0);
  });

  test("a broker on an address that is not loopback is not asked at all over ws://, and wss:// is the remedy", async () => {
    const broker = await there();
    expect(await outcome(`ws://attic:${secret}@${broker.place}`)).toMatch(/^78: .*in clear text: use wss:\/\//);
    expect(broker.clients).toBe(0);
  });

  test("a broker on an address that is not loopback is refused when only one of several URLs names it", async () => {
    const broker = await there();
    expect(await outcome(`nats://127.0.0.1:1,nats://${broker.place}`)).toMatch(/^78: .*without a credential/);
  });

  test("a broker on an address that is not loopback is used without either where the laboratory's setting allows it", async () => {
    const broker = await there();
    expect(await outcome(`nats://${broker.place}`, { insecure: true })).toBe("connected");
  });

  test.each([
    ["an agent", "agent"],
    ["a gateway", "gateway"],
  ])(
    "a broker on an address that is not loopback is refused by %s at the start, in one line that names the remedy",
    async (_, command) => {
      const broker = await there();
      const { exitCode, stderr } = await trunkline([command], {
        TRUNKLINE_NATS_URL: `nats://${broker.place}`,
        TRUNKLINE_RUNTIME: "scripted",
        TRUNKLINE_PORT: "0",
        TRUNKLINE_OPERATIONS_PORT: "0",
      });
      expect([exitCode, broker.clients]).toEqual([78, 0]);
      expect(stderr).toMatch(
        /^trunkline: TRUNKLINE_NATS_URL names a broker on another host .*TRUNKLINE_NATS_INSECURE/m,
      );
    },
  );
});
