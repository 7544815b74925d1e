import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { MachineMinter } from "#shared/broker/nats-credentials.ts";
import { NatsRevocations } from "#shared/broker/nats-revocations.ts";
import { makeNatsSite } from "#shared/broker/nats-site.ts";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { type MachineKeyPair, newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { NatsUser } from "../harness/infra/nats-user.ts";
import { startOperatorNats, type OperatorNats } from "../harness/infra/operator-nats.ts";
import { until } from "../harness/until.ts";

const hourMs = 3_600_000;
const shifted = (byMs: number): Clock => ({ ...systemClock, wall: () => Date.now() + byMs });

describe.skipIf(lentOnly("nats"))("NATS in operator mode", () => {
  let nats: OperatorNats;
  let system: Broker;
  beforeAll(async () => {
    nats = await startOperatorNats();
    system = await connectNats({
      url: nats.url.replace("nats:", "tls:"),
      security: { caFile: nats.certificates.caFile },
      credentialsFile: nats.file("system.creds"),
      name: "test",
      clock: systemClock,
      log: createLog({ level: "silent", name: "test" }),
    });
  });
  afterAll(async () => {
    await system.close();
    await nats.stop();
  });

  const revocationsAt = (clock: Clock, operatorKey = nats.site.files["operator.seed"].trim()): NatsRevocations =>
    new NatsRevocations({ system, operatorKey, account: nats.site.account, clock });

  /** Connects directly, as a machine with a JWT for its own key. */
  async function connect(key: MachineKeyPair, { clock = systemClock } = {}): Promise<NatsUser> {
    const jwt = minterAt(clock).mint("attic", key.publicKey, { lifetimeMs: hourMs });
    const login = { jwt: { jwt, key }, caFile: nats.certificates.caFile };
    const user = await NatsUser.connect({ url: nats.url, ...login });
    onTestFinished(() => user[Symbol.asyncDispose]());
    return user;
  }

  const minterAt = (clock: Clock): MachineMinter =>
    new MachineMinter({
      signingKey: nats.site.files["machines.seed"].trim(),
      credentialsFile: nats.file("gateway.creds"),
      clock,
    });

  const refused = /authorization/i;

  test("a revoked key loses its connection at once, and no other connection notices", async () => {
    const [stolen, other] = [newMachineKeyPair(), newMachineKeyPair()];
    const [itsConnection, othersConnection] = [await connect(stolen), await connect(other)];
    await revocationsAt(systemClock).revoke([{ publicKey: stolen.publicKey, at: Date.now() }]);
    expect(await itsConnection.ended()).toMatch(/revoked|authorization/i);
    await expect(connect(stolen)).rejects.toThrow(refused);
    await othersConnection.flush();
  });

  test.each([
    ["right", 0],
    ["an hour ahead", hourMs],
    ["an hour behind", -hourMs],
  ])("a revoked key stays refused after a restart of NATS, signed by a clock that is %s", async (_, byMs) => {
    const stolen = newMachineKeyPair();
    await connect(stolen);
    await revocationsAt(shifted(byMs)).revoke([{ publicKey: stolen.publicKey, at: Date.now() + byMs }]);
    await nats.restart();
    await until(() => system.connected, { what: "the system connection to be back" });
    await expect(connect(stolen)).rejects.toThrow(refused);
    await connect(newMachineKeyPair());
  });

  test("a JWT from a minter whose clock is an hour ahead does not outlive its key", async () => {
    const stolen = newMachineKeyPair();
    await connect(stolen, { clock: shifted(hourMs) });
    await revocationsAt(systemClock).revoke([{ publicKey: stolen.publicKey, at: Date.now() }]);
    await expect(connect(stolen, { clock: shifted(hourMs) })).rejects.toThrow(refused);
  });

  test("two gateways that revoke at the same time both have their way", async () => {
    const pairs = Array.from({ length: 4 }, newMachineKeyPair);
    const keys = pairs.map(({ publicKey }) => ({ publicKey, at: Date.now() }));
    // Every gateway knows all revoked machines, and repeats its push until NATS has all of them.
    await Promise.all([revocationsAt(systemClock).revoke(keys), revocationsAt(systemClock).revoke(keys.toReversed())]);
    for (const pair of pairs) await expect(connect(pair)).rejects.toThrow(refused);
  });

  test("the key of another operator is refused by name, and locks nobody out", async () => {
    const another = makeNatsSite(systemClock).files["operator.seed"].trim();
    const pair = newMachineKeyPair();
    const revoking = revocationsAt(systemClock, another).revoke([{ publicKey: pair.publicKey, at: Date.now() }]);
    await expect(revoking).rejects.toThrow("TRUNKLINE_NATS_OPERATOR_KEY is the key of another operator");
    await connect(pair);
  });

  test("an expired JWT opens nothing", async () => {
    await expect(connect(newMachineKeyPair(), { clock: shifted(-2 * hourMs) })).rejects.toThrow(refused);
  });
});
