import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { NatsRevocations } from "#shared/broker/nats-revocations.ts";
import { systemClock } from "#shared/process/clock.ts";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import type { Pairing } from "#shared/site/pairing-file.ts";
import { openSite } from "#shared/site/reach-site.ts";
import { connectDirect, type DirectConnection } from "../../services/agent/paired-agent.ts";
import { CredentialSite } from "../harness/credential-site.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { type OperatorNats, startOperatorNats } from "../harness/infra/operator-nats.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";

const hourMs = 3_600_000;
/** A credential lasts an hour, less the time in which it was made. */
const slackMs = 10_000;
const log = createLog({ level: "silent", name: "test" });

describe.skipIf(lentOnly("nats"))("a direct connection to NATS", () => {
  let nats: OperatorNats;
  let site: CredentialSite;
  const parts = new AsyncDisposableStack();
  beforeAll(async () => {
    nats = parts.use(await startOperatorNats());
    const { url, security } = nats.connection;
    const asOperator = { url, security, credentialsFile: nats.file("system.creds"), name: "test" };
    const system = await connectNats({ ...asOperator, clock: systemClock, log });
    parts.defer(() => system.close());
    const operatorKey = nats.site.files["operator.seed"].trim();
    const { account } = nats.site;
    site = parts.use(
      await CredentialSite.start({
        offer: { minter: nats.minter, servers: url, ca: undefined },
        revocations: new NatsRevocations({ system, operatorKey, account, clock: systemClock }),
      }),
    );
  });
  afterAll(() => parts.disposeAsync());

  /** Connects a machine. The test turns the clock of its renewals; the connection itself lives in real time. */
  async function connect(machine: string) {
    const pairing = await site.pair(machine);
    const turned = new TurnableClock();
    const clock = { ...systemClock, after: (ms: number, run: () => void) => turned.after(ms, run) };
    const way = openSite({ origin: site.origin, environment: {} });
    const direct = await connectDirect({ pairing, site: way, security: nats.connection.security, clock, log });
    if (direct === undefined) throw new Error("there is no direct connection");
    onTestFinished(() => direct.close());
    const renewals = (): number => requestsOf(pairing) - 1;
    return { direct, turned, renewals };
  }

  const requestsOf = ({ publicKey }: Pairing): number =>
    site.requests.filter(({ public_key }) => public_key === publicKey).length;

  /** Resolves when NATS knows the machine by a newer connection than this one. */
  const connectedAnew = ({ broker }: DirectConnection, before: string | undefined): Promise<unknown> =>
    until(() => broker.connected && broker.connectionId !== before, { what: "the connection to be made anew" });

  test("gets a new credential at 75 % of the life of each, and keeps its subscriptions", async () => {
    const { direct, turned, renewals } = await connect("attic");
    const { broker } = direct;
    const heard: string[] = [];
    broker.subscribe("tl1.rollcall", ({ data }) => void heard.push(Buffer.from(data).toString()));
    await broker.flush();
    const gateway = await connectNats({ ...nats.connection, name: "test", clock: systemClock, log });
    onTestFinished(() => gateway.close());
    for (const renewal of [1, 2]) {
      const before = broker.connectionId;
      await turned.advanceAwaiting(0.75 * hourMs - slackMs);
      expect(renewals()).toBe(renewal - 1);
      await turned.advanceAwaiting(slackMs);
      await connectedAnew(direct, before);
      expect(renewals()).toBe(renewal);
      // NATS has the subscription again once it has answered.
      await broker.flush();
      gateway.publish("tl1.rollcall", Buffer.from(`after renewal ${renewal}`));
      await until(() => heard.includes(`after renewal ${renewal}`), { what: "a message on the renewed connection" });
    }
  });

  test("is tried again a minute after a renewal that failed", async () => {
    const { direct, turned, renewals } = await connect("cellar");
    const before = direct.broker.connectionId;
    site.isAway = true;
    await turned.advanceAwaiting(0.75 * hourMs);
    await until(() => turned.timersWaiting === 1, { what: "the next attempt to be planned" });
    site.isAway = false;
    await turned.advanceAwaiting(60_000);
    await connectedAnew(direct, before);
    expect(renewals()).toBe(1);
  });

  test("is told at its renewal that its machine was revoked", async () => {
    const { direct, turned } = await connect("loft");
    const before = direct.broker.connectionId;
    await site.revoke("loft", { isHeard: false });
    await turned.advanceAwaiting(0.75 * hourMs);
    expect(await direct.refused).toMatchObject({
      exitCode: exitCodes.config,
      message: expect.stringContaining("loft was revoked"),
    });
    expect(direct.broker.connectionId).toBe(before);
  });

  test("is cut by NATS when its machine is revoked, and told a second later", async () => {
    const { direct, turned } = await connect("shed");
    await site.revoke("shed");
    await until(() => !direct.broker.connected, { what: "NATS to cut the connection" });
    await turned.advanceAwaiting(1_000);
    expect(await direct.refused).toMatchObject({
      exitCode: exitCodes.config,
      message: expect.stringContaining("shed was revoked"),
    });
  });
});
