import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { natsPasswords } from "../harness/infra/compose-file.ts";
import { startConfiguredNats, type ConfiguredNats } from "../harness/infra/configured-servers.ts";
import { NatsUser } from "../harness/infra/nats-user.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { anywhere, startAgent, type AgentProcess } from "../harness/start-trunkline.ts";
import { TcpProxy } from "../harness/tcp-proxy.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const reported = "a second connection is open under the NATS user of this machine";
const environment = natsPasswords();
const passwordOf = (user: string): string => environment[`NATS_PASSWORD_${user.toUpperCase()}`] ?? "";

describe.skipIf(lentOnly("nats"))("a gateway on NATS with infra/nats.conf", () => {
  let nats: ConfiguredNats;
  let line: TcpProxy;
  let gateway: TrunklineProcess;
  let agent: AgentProcess;
  const as = (user: string, port = nats.port): string => `tls://${user}:${passwordOf(user)}@127.0.0.1:${port}`;
  const withCa = () => ({ TRUNKLINE_NATS_CA: nats.certificates.caFile });
  const connect = async (user: string): Promise<NatsUser> => {
    const { caFile } = nats.certificates;
    const connected = await NatsUser.connect({ url: nats.url, user, password: passwordOf(user), caFile });
    onTestFinished(() => connected[Symbol.asyncDispose]());
    return connected;
  };
  const reports = async (): Promise<unknown[]> =>
    (await gateway.logLines()).filter(({ msg }) => msg.startsWith(reported)).map(({ machine }) => machine);

  beforeAll(async () => {
    nats = await startConfiguredNats(environment);
    line = await TcpProxy.before(nats.url);
    gateway = await TrunklineProcess.start({
      args: ["gateway"],
      settings: {
        ...anywhere,
        ...withCa(),
        TRUNKLINE_NATS_URL: as("gateway"),
        TRUNKLINE_NATS_SYSTEM_URL: as("watch"),
      },
    });
    await gateway.logged("gateway ready");
    agent = await startAgent({ natsUrl: as("attic", line.port), machine: "attic", env: withCa() });
  });
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]();
    await gateway?.[Symbol.asyncDispose]();
    await line?.[Symbol.asyncDispose]();
    await nats?.stop();
  });

  test("a gateway on NATS with infra/nats.conf reports nothing of an agent that starts, or connects again, or of another gateway", async () => {
    await connect("gateway");
    line.cut();
    await agent.logged("connected to NATS again");
    const roster = await connect("gateway");
    const presences = await roster.listen("tl1.presence.attic");
    await until(() => presences.length >= 2, { what: "two presences of the agent on its new connection" });
    expect(await reports()).toEqual([]);
  });

  test("a gateway on NATS with infra/nats.conf reports a silent listener under a machine's user within about a second, by its address", async () => {
    const tap = await connect("attic");
    await tap.listen("tl1.machine.attic.>");
    const told = await gateway.logged(reported);
    expect(told).toMatchObject({ machine: "attic", address: "127.0.0.1", level: 50 });
    expect(told.msg).toContain("change that user's password");
  });

  test("a gateway on NATS with infra/nats.conf does not start with a system user that may not hear of connections, and names the setting", async () => {
    const { exitCode, stderr } = await trunkline(["gateway"], {
      ...anywhere,
      ...withCa(),
      TRUNKLINE_NATS_URL: as("gateway"),
      TRUNKLINE_NATS_SYSTEM_URL: as("cellar"),
    });
    expect(exitCode).toBe(78);
    expect(stderr).toMatch(/^trunkline: TRUNKLINE_NATS_SYSTEM_URL: NATS does not let this credential subscribe/m);
  });

  test("a gateway on NATS with infra/nats.conf says at its start that second connections are not detected when it has no system user", async () => {
    const settings = { ...anywhere, ...withCa(), TRUNKLINE_NATS_URL: as("gateway") };
    await using other = await TrunklineProcess.start({ args: ["gateway"], settings });
    const told = await other.logged("a second connection under a machine's NATS user is not detected");
    expect(told.msg).toContain("TRUNKLINE_NATS_SYSTEM_URL");
  });
});
