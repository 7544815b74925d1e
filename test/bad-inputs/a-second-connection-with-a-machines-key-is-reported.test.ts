import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { signClaims } from "#shared/broker/nats-credentials.ts";
import { Nkey } from "#shared/protocol/nkey.ts";
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
  let attic: AgentProcess;
  const parts = new AsyncDisposableStack();
  beforeAll(async () => {
    site = parts.use(
      await OperatorSite.start({
        gateways: 1,
        gatewayEnvOn: (nats) => ({
          TRUNKLINE_NATS_SYSTEM_CREDS: nats.file("system.creds"),
        }),
      }),
    );
    line = parts.use(await TcpProxy.before(site.originOf(0)));
    attic = await site.startMachine("attic", { models: ["scripted"], origin: `http://127.0.0.1:${line.port}` });
    await site.untilListed("scripted");
  });
  afterAll(() => parts.disposeAsync());

  const reports = async (): Promise<LogLine[]> => {
    const lines = (await Promise.all(site.gateways.map((gateway) => gateway.logLines()))).flat();
    return lines.filter(({ msg }) => msg.startsWith(reported));
  };

  /** Listens with the stolen key of a machine and a credential for it that the stolen signing key made. */
  async function tap({ publicKey, seed, machine }: Pairing): Promise<void> {
    const signer = Nkey.fromSeed("A", site.nats.site.files["machines.seed"].trim());
    if (signer === undefined) throw new Error("the signing key is damaged");
    const nats = { type: "user", issuer_account: site.nats.site.account } as const;
    const jwt = signClaims({ sub: publicKey, name: machine, nats }, signer, Math.floor(Date.now() / 1_000));
    const { url, certificates } = site.nats;
    const user = await NatsUser.connect({ url, caFile: certificates.caFile, jwt: { jwt, key: { seed } } });
    onTestFinished(() => user[Symbol.asyncDispose]());
    await user.listen(`tl1.machine.${machine}.>`);
  }

  test("a gateway on NATS in operator mode reports nothing of a tunnel, also when it is opened anew", async () => {
    const [gateway] = site.gateways;
    const connects = async (): Promise<number> =>
      (await gateway?.logLines())?.filter(({ msg }) => msg === "a machine has connected").length ?? 0;
    const before = await connects();
    line.cut();
    await until(async () => (await connects()) > before, { what: "the tunnel to be open again" });
    await site.untilListed("scripted");
    expect(await reports()).toEqual([]);
  });

  test("a gateway on NATS in operator mode reports a silent listener with the key of a machine, and the remedy", async () => {
    const pairing = readPairing(attic.stateDir);
    if (pairing === undefined) throw new Error("the machine is not paired");
    await tap(pairing);
    const told = await until(async () => (await reports()).at(0), { what: "a report of the listener" });
    const remedy = "trunkline machines revoke attic";
    expect(told).toMatchObject({
      machine: "attic",
      address: "127.0.0.1",
      level: 50,
      msg: expect.stringContaining(remedy),
    });
  });
});
