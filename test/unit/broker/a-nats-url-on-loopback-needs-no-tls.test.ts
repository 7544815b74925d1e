import type { PeerCertificate } from "node:tls";
import { expect, test } from "vitest";
import { protectNats, readNatsUrl } from "#shared/broker/nats-security.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { agentConfig } from "../../../services/agent/config.ts";
import { gatewayConfig } from "../../../services/gateway/config.ts";

/** The protection that a URL leads to without any other setting. */
function protection(url: string): "clear text is allowed" | "TLS is forced" | "refused" {
  try {
    return protectNats(readNatsUrl(url), {}).tls === undefined ? "clear text is allowed" : "TLS is forced";
  } catch (error) {
    if (error instanceof StartFailure) return "refused";
    throw error;
  }
}

test.each(["127.0.0.1", "127.9.9.9:1", "localhost", "LOCALHOST:4222", "[::1]:4222", "[::ffff:127.0.0.1]:4222"])(
  "a NATS URL with the loopback host %s allows clear text without a password",
  (host) => expect(protection(`nats://${host}`)).toBe("clear text is allowed"),
);

test.each([
  "broker.example",
  "localhost.example",
  "127.0.0.1.example",
  "192.168.1.5",
  "0.0.0.0",
  "[fd00::2]:4222",
  "127.1",
  "127.0.0.1,nats://192.168.1.5",
])("a NATS URL with the host %s is refused without a password, and forces TLS with one", (host) => {
  expect(protection(`nats://${host}`)).toBe("refused");
  expect(protection(`nats://user:password@${host}`)).toBe("TLS is forced");
  expect(protection(`tls://user:password@${host}`)).toBe("TLS is forced");
});

test("a NATS URL that begins with tls:// forces TLS on loopback too", () => {
  expect(protection("tls://127.0.0.1:4222")).toBe("TLS is forced");
});

test("a NATS URL accepts a certificate for any of its hosts, and for no name that a server announced", () => {
  const { tls } = protectNats(readNatsUrl("tls://u:p@one.example,tls://u:p@192.0.2.7:4222"), {});
  const check = (subjectaltname: string): string | undefined =>
    tls?.checkServerIdentity("announced.example", { subjectaltname } as PeerCertificate)?.message;
  expect([check("DNS:one.example"), check("IP Address:192.0.2.7")]).toEqual([undefined, undefined]);
  expect(check("DNS:announced.example, DNS:localhost")).toMatch(/does not match certificate's altnames/);
});

test.each(["tls://one.example,nats://two.example", "wss://one.example, tls://two.example"])(
  "a NATS URL that mixes schemes (%s) is an error of the configuration",
  (url) => {
    const environment = { TRUNKLINE_NATS_URL: url };
    for (const read of [agentConfig, gatewayConfig]) {
      expect(() => read(environment)).toThrow("TRUNKLINE_NATS_URL must begin with the same scheme in all its URLs");
    }
  },
);
