import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  beatsSubject,
  machinePattern,
  machineSubject,
  presencePattern,
  presenceSubject,
  replyPattern,
  replySubject,
  rollcallSubject,
} from "#shared/protocol/subjects.ts";
import { filledEnvironment } from "../harness/infra/compose-file.ts";
import { startConfiguredNats, type ConfiguredNats } from "../harness/infra/configured-servers.ts";
import { NatsUser } from "../harness/infra/nats-user.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { until } from "../harness/until.ts";

const gateway = "g".repeat(22);
const attic = { machine: "attic", epoch: "epoch1" };
const cellar = { machine: "cellar", epoch: "epoch1" };
const replyOf = ({ machine }: { machine: string }) => replySubject({ gateway, machine, job: "j".repeat(22) });

describe.skipIf(lentOnly("nats"))("NATS with infra/nats.conf", () => {
  const environment = filledEnvironment();
  const passwordOf = (user: string) => environment[`NATS_PASSWORD_${user.toUpperCase()}`];
  let nats: ConfiguredNats;
  beforeAll(async () => {
    nats = await startConfiguredNats(environment);
  });
  afterAll(() => nats.stop());

  async function connect(login: { user?: string; password?: string | undefined }): Promise<NatsUser> {
    const connected = await NatsUser.connect({ url: nats.url, caFile: nats.certificates.caFile, ...login });
    onTestFinished(() => connected[Symbol.asyncDispose]());
    return connected;
  }
  const as = (user: "gateway" | "attic" | "cellar" | "watch") => connect({ user, password: passwordOf(user) });
  const everybody = () => Promise.all([as("attic"), as("cellar"), as("gateway")]);

  test.each([
    ["no name", {}],
    ["no password", { user: "attic" }],
    ["an empty password", { user: "attic", password: "" }],
    ["another machine's password", { user: "attic", password: passwordOf("cellar") }],
    ["a name that is not listed", { user: "nobody", password: passwordOf("attic") }],
  ])("nobody comes in with %s", async (_, login) => {
    await expect(connect(login)).rejects.toThrow(/authorization/i);
  });

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
    expect(new Set(connections)).toEqual(new Set(["$SYS.ACCOUNT.TRUNKLINE.CONNECT"]));
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
});
