import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  beatsSubject,
  machinePattern,
  machineSubject,
  placedPattern,
  placedSubject,
  presencePattern,
  presenceSubject,
  replyPattern,
  replySubject,
  rollcallSubject,
  tunnelPattern,
  tunnelSubject,
} from "#shared/protocol/subjects.ts";
import { newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { natsPasswords } from "../harness/infra/compose-file.ts";
import { startConfiguredNats, type ConfiguredNats } from "../harness/infra/configured-servers.ts";
import { NatsUser } from "../harness/infra/nats-user.ts";
import { startOperatorNats, type OperatorNats } from "../harness/infra/operator-nats.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { until } from "../harness/until.ts";

const gateway = "g".repeat(22);
const attic = { machine: "attic", epoch: "epoch1" };
const cellar = { machine: "cellar", epoch: "epoch1" };
const replyOf = ({ machine }: { machine: string }) => replySubject({ gateway, machine, job: "j".repeat(22) });

type User = "gateway" | "attic" | "cellar" | "watch";
type Login = Omit<Parameters<typeof NatsUser.connect>[0], "url" | "caFile">;

async function connectTo({ url, certificates }: ConfiguredNats, login: Login): Promise<NatsUser> {
  const connected = await NatsUser.connect({ url, caFile: certificates.caFile, ...login });
  onTestFinished(() => connected[Symbol.asyncDispose]());
  return connected;
}

describe.skipIf(lentOnly("nats"))("NATS with infra/nats.conf", () => {
  const environment = natsPasswords();
  const passwordOf = (user: string) => environment[`NATS_PASSWORD_${user.toUpperCase()}`];
  let nats: ConfiguredNats;
  beforeAll(async () => void (nats = await startConfiguredNats(environment)));
  afterAll(() => nats.stop());
  keepsMachinesApart((user) => connectTo(nats, { user, password: passwordOf(user) }));

  test.each([
    ["no name", {}],
    ["no password", { user: "attic" }],
    ["an empty password", { user: "attic", password: "" }],
    ["another machine's password", { user: "attic", password: passwordOf("cellar") }],
    ["a name that is not listed", { user: "nobody", password: passwordOf("attic") }],
  ])("nobody comes in with %s", async (_, login) => {
    await expect(connectTo(nats, login)).rejects.toThrow(/authorization/i);
  });
});

describe.skipIf(lentOnly("nats"))("NATS as `trunkline nats init` configures it", () => {
  let nats: OperatorNats;
  beforeAll(async () => void (nats = await startOperatorNats()));
  afterAll(() => nats.stop());
  const logins: Readonly<Record<User, () => Login>> = {
    gateway: () => ({ creds: nats.site.files["gateway.creds"] }),
    watch: () => ({ creds: nats.site.files["system.creds"] }),
    attic: () => ({ jwt: nats.minter.newUser("attic") }),
    cellar: () => ({ jwt: nats.minter.newUser("cellar") }),
  };
  keepsMachinesApart((user) => connectTo(nats, logins[user]()));

  test.each([
    ["no credential", {}],
    ["a name and a password", { user: "attic", password: "attic" }],
  ])("nobody comes in with %s", async (_, login) => {
    await expect(connectTo(nats, login)).rejects.toThrow(/authorization/i);
  });

  test("the JWT of a machine lets nobody in with another key", async () => {
    const { jwt } = nats.minter.newUser("attic");
    await expect(connectTo(nats, { jwt: { jwt, key: newMachineKeyPair() } })).rejects.toThrow(/authorization/i);
  });

  test("gateways tell each other of tunnels, and no machine hears or says it", async () => {
    const connect = (user: User) => connectTo(nats, logins[user]());
    const [ours, other, its] = await Promise.all([connect("gateway"), connect("gateway"), connect("attic")]);
    const heard = await other.listen(tunnelPattern);
    expect(await its.listen(tunnelSubject("attic"))).toEqual(["refused"]);
    await its.publish(tunnelSubject("cellar"));
    await ours.publish(tunnelSubject("attic"));
    await other.flush();
    expect(heard).toEqual([tunnelSubject("attic")]);
  });
});

function keepsMachinesApart(as: (user: User) => Promise<NatsUser>): void {
  const everybody = () => Promise.all([as("attic"), as("cellar"), as("gateway")]);

  test("a machine hears its own jobs, its own presence and the roll, and a gateway its machines", async () => {
    const [its, , ours] = await everybody();
    const itHears = await Promise.all(
      [machinePattern(attic), presenceSubject("attic"), rollcallSubject].map((p) => its.listen(p)),
    );
    const weHear = await Promise.all([replyPattern(gateway), presencePattern].map((p) => ours.listen(p)));
    const down = [machineSubject(attic, "job"), machineSubject(attic, "control"), rollcallSubject];
    const up = [replyOf(attic), beatsSubject({ gateway, machine: "attic" }), presenceSubject("attic")];
    await ours.publish(...down);
    await its.publish(...up);
    await Promise.all([its.flush(), ours.flush()]);
    expect(itHears).toEqual([down.slice(0, 2), up.slice(2), down.slice(2)]);
    expect(weHear).toEqual([up.slice(0, 2), up.slice(2)]);
  });

  test.each([
    "tl1.machine.cellar.>",
    machineSubject(cellar, "job"),
    "tl1.machine.*.*.job",
    "tl1.machine.>",
    presenceSubject("cellar"),
    presencePattern,
    replyPattern(gateway),
    "tl1.reply.*.attic.>",
    replyOf(cellar),
    placedPattern,
    placedSubject(gateway),
    "tl1.>",
    ">",
    "*.>",
    "_INBOX.>",
    "$SYS.>",
  ])("a machine cannot listen to %s, alone or in a group", async (pattern) => {
    const [its, other, ours] = await everybody();
    const heard = [await its.listen(pattern), await its.listen(pattern, "group")];
    await ours.publish(machineSubject(cellar, "job"));
    await other.publish(replyOf(cellar), presenceSubject("cellar"));
    await its.flush();
    expect(heard).toEqual([["refused"], ["refused"]]);
  });

  test("a machine cannot answer, announce, order or call the roll in another's name", async () => {
    const [its, other, ours] = await everybody();
    const weHear = [await ours.listen("tl1.reply.>"), await ours.listen(presencePattern)];
    const otherHears = [await other.listen("tl1.machine.cellar.>"), await other.listen(rollcallSubject)];
    await its.publish(replyOf(cellar), `tl1.reply.${gateway}.attic`, presenceSubject("cellar"));
    await its.publish(machineSubject(cellar, "job"), machineSubject(attic, "control"), rollcallSubject);
    await its.publish(replyOf(attic));
    await Promise.all([ours.flush(), other.flush()]);
    expect(weHear).toEqual([[replyOf(attic)], []]);
    expect(otherHears).toEqual([[], []]);
  });

  test("gateways tell each other what they have placed, and no machine hears or says it", async () => {
    const [its, , ours] = await everybody();
    const other = await as("gateway");
    const heard = await other.listen(placedPattern);
    expect(await its.listen(placedPattern)).toEqual(["refused"]);
    await its.publish(placedSubject("a".repeat(22)), placedSubject(gateway));
    await ours.publish(placedSubject(gateway));
    await Promise.all([ours.flush(), other.flush()]);
    expect(heard).toEqual([placedSubject(gateway)]);
  });

  test("the user that watches connections hears of them, and can do nothing else", async () => {
    const watcher = await as("watch");
    const connections = await watcher.listen("$SYS.ACCOUNT.*.CONNECT");
    const others = ["$SYS.>", ">", "tl1.>", "$SYS.ACCOUNT.*.DISCONNECT", "$SYS.REQ.>"];
    const heard = await Promise.all(others.map((pattern) => watcher.listen(pattern)));
    expect(heard).toEqual(others.map(() => ["refused"]));
    const ours = await as("gateway");
    const presences = await ours.listen(presencePattern);
    await watcher.publish(presenceSubject("attic"));
    await until(() => connections.length > 0, { what: "the gateway's connection to be reported" });
    expect(connections[0]).toMatch(/^\$SYS\.ACCOUNT\.\w+\.CONNECT$/);
    expect(presences).toEqual([]);
  });

  test("a gateway can neither answer nor announce as a machine, nor listen to what machines are given", async () => {
    const [, other, ours] = await everybody();
    const weHear = [await ours.listen("tl1.reply.>"), await ours.listen(presencePattern)];
    const otherHears = await other.listen("tl1.machine.cellar.>");
    expect([await ours.listen("tl1.machine.>"), await ours.listen(">")]).toEqual([["refused"], ["refused"]]);
    await ours.publish(replyOf(cellar), presenceSubject("cellar"), machineSubject(cellar, "job"));
    await Promise.all([ours.flush(), other.flush()]);
    expect(weHear).toEqual([[], []]);
    expect(otherHears).toEqual([machineSubject(cellar, "job")]);
  });
}
