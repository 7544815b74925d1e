import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Pairing, readPairing } from "#shared/site/pairing-file.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { NatsUser } from "../harness/infra/nats-user.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import type { AgentProcess } from "../harness/start-trunkline.ts";
import type { LogLine } from "../harness/trunkline-process.ts";
import { TcpProxy } from "../harness/tcp-proxy.ts";
import { until } from "../harness/until.ts";

const reported = "a second connection is open with the key of this machine";

describe.skipIf(lentOnly("nats", "redis"))("a gateway on NATS in operator mode", () => {
  let site: OperatorSite;
  let line: TcpProxy;
  const machines: Record<string, AgentProcess> = {};
  const parts = new AsyncDisposableStack();
  beforeAll(async () => {
    site = parts.use(
      await OperatorSite.start({
        gateways: 1,
        gatewayEnvOn: (nats) => ({
          TRUNKLINE_NATS_DIRECT_URL: nats.url.replace("nats:", "tls:"),
          TRUNKLINE_NATS_SYSTEM_CREDS: nats.file("system.creds"),
        }),
      }),
    );
    line = parts.use(await TcpProxy.before(site.originOf(0)));
    const env = { TRUNKLINE_DIRECT: "true" };
    machines["direct"] = await site.startMachine("attic", { models: ["scripted"], env });
    machines["tunnelled"] = await site.startMachine("cellar", {
      models: ["scripted:plain"],
      origin: `http://127.0.0.1:${line.port}`,
    });
    await site.untilListed("scripted", "scripted:plain");
  });
  afterAll(() => parts.disposeAsync());

  const reports = async (): Promise<LogLine[]> => {
    const lines = (await Promise.all(site.gateways.map((gateway) => gateway.logLines()))).flat();
    return lines.filter(({ msg }) => msg.startsWith(reported));
  };

  /** Listens with the stolen key of a machine and a credential for it. */
  async function tap({ publicKey, seed, machine }: Pairing): Promise<void> {
    const jwt = site.nats.minter.mint(machine, publicKey, { lifetimeMs: 60_000 });
    const { url, certificates } = site.nats;
    const user = await NatsUser.connect({ url, caFile: certificates.caFile, jwt: { jwt, key: { seed } } });
    onTestFinished(() => user[Symbol.asyncDispose]());
    await user.listen(`tl1.machine.${machine}.>`);
  }

  const pairingOf = (machine: string): Pairing => {
    const pairing = readPairing(machines[machine]?.stateDir ?? "");
    if (pairing === undefined) throw new Error("the machine is not paired");
    return pairing;
  };

  test("reports nothing of tunnels, of direct connections, and of a tunnel that is opened anew", async () => {
    const [gateway] = site.gateways;
    const connects = async (): Promise<number> =>
      (await gateway?.logLines())?.filter(({ msg }) => msg === "a machine has connected").length ?? 0;
    const before = await connects();
    line.cut();
    await until(async () => (await connects()) > before, { what: "the tunnel to be open again" });
    await site.untilListed("scripted", "scripted:plain");
    expect(await reports()).toEqual([]);
  });

  test.each(["direct", "tunnelled"])(
    "reports a silent listener with the key of a %s machine, and the remedy",
    async (which) => {
      const pairing = pairingOf(which);
      await tap(pairing);
      const remedy = `trunkline machines revoke ${pairing.machine}`;
      const told = await until(async () => (await reports()).find(({ machine }) => machine === pairing.machine), {
        what: "a report of the listener",
      });
      expect(told).toMatchObject({ address: "127.0.0.1", level: 50, msg: expect.stringContaining(remedy) });
    },
  );
});
