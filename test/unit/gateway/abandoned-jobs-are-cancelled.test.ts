import { expect, test } from "vitest";
import { encodeJson, type BeatRow } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import { beatsSubject, replySubject } from "#shared/protocol/subjects.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { end } from "./follower-on-a-wire.ts";
import { gateway, gatewayOnBroker } from "./gateway-on-a-broker.ts";

test("a job that a gateway does not know is acknowledged when it is a terminal frame, so that it is repeated no more", async () => {
  const { machine, pass, timing } = gatewayOnBroker();
  machine.listen();
  const [one, two] = [newToken(), newToken()];
  machine.say(one, "end", end, 5);
  machine.say(two, "fault", { code: "cancelled", message: "" }, 1);
  machine.say(newToken(), "data", "nobody waits for this", 1);
  await pass(timing.acceptWaitMs / 6);
  expect(machine.takeControls()).toEqual([{ kind: "finish", jobs: [one, two], gateway }]);
});

test("a job that a gateway does not know is told to stop when a beat has a row of it, and acknowledged when that says that it is over", async () => {
  const { machine, pass, timing } = gatewayOnBroker();
  machine.listen();
  const [runs, over] = [newToken(), newToken()];
  machine.beat([runs, "running", 0, 3, 7, 0], [over, "ended", 0, 3, 7, 0]);
  await pass(timing.acceptWaitMs / 6);
  expect(machine.takeControls()).toEqual([
    { kind: "cancel", job: runs, reason: "gave_up" },
    { kind: "finish", jobs: [over], gateway },
  ]);
});

test("a job that a gateway does not know is ignored when a beat names it by what is no job's id, however long that is", async () => {
  const { machine, settle } = gatewayOnBroker();
  machine.listen();
  // Bytes that are no text become three times as many, more than the broker carries back.
  const row = [Buffer.from('["'), Buffer.alloc(400_000, 0xff), Buffer.from('","ended",0,0,0,0]')];
  const beat = [Buffer.from(`{"epoch":"${machine.epoch}","rows":[`), ...row, Buffer.from("]}")];
  const subject = beatsSubject({ gateway, machine: machine.name });
  machine.connection.publish(subject, encodeFrame({ kind: "beat" }, Buffer.concat(beat)));
  await settle();
  expect(machine.takeControls()).toEqual([]);
});

test("a job that a gateway does not know is answered within bounds when a beat has thousands of rows of it", async () => {
  const { machine, settle } = gatewayOnBroker();
  machine.listen();
  machine.beat(...Array.from({ length: 4_000 }, (): BeatRow => [newToken(), "running", 0, 0, 0, 0]));
  await settle();
  expect(machine.takeControls()).toHaveLength(100);
});

test("a job that a gateway does not know is not told anything when its machine has never announced itself", async () => {
  const { machine, broker, settle } = gatewayOnBroker();
  machine.listen();
  const subject = replySubject({ gateway, machine: "gpu-9", job: newToken() });
  broker.publish(subject, encodeFrame({ kind: "end", sequence: 1 }, new Uint8Array()));
  await settle();
  expect(machine.controls).toEqual([]);
});

test("a machine's word about a job of another machine does not count", async () => {
  const { machine, other, run, settle } = gatewayOnBroker();
  machine.listen();
  other.listen();
  const { id, told } = await run();
  machine.say(id, "accept", { state: "running" });
  other.say(id, "data", "forged", 1);
  other.say(id, "end", end, 1);
  other.beat();
  machine.say(id, "data", "true", 1);
  await settle();
  expect(told).toEqual(["accepted", "true"]);
});

test.each<[string, Uint8Array]>([
  ["of another version", Uint8Array.of(1, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)],
  ["of a later kind", Uint8Array.of(2, 99, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)],
  ["of too few bytes", Uint8Array.of(2, 4)],
  ["of no bytes", new Uint8Array()],
])("a job that a gateway does not know is dropped when it is a frame %s, and the job goes on", async (_, bytes) => {
  const { machine, run, settle } = gatewayOnBroker();
  machine.listen();
  const { id, told } = await run();
  machine.connection.publish(replySubject({ gateway, machine: "gpu-1", job: id }), bytes);
  machine.say(id, "accept", { state: "running" });
  machine.say(id, "data", "Hello", 1);
  await settle();
  expect(told).toEqual(["accepted", "Hello"]);
});

test("a beat ends the jobs of its machine that it has no row of, and no others", async () => {
  const { machine, run, settle } = gatewayOnBroker();
  machine.listen();
  const [gone, there, notYet] = [await run(), await run(), await run()];
  for (const { id } of [gone, there]) machine.say(id, "accept", { state: "running" });
  machine.beat([there.id, "running", 0, 0, 0, 0]);
  await settle();
  expect([gone, there, notYet].map(({ told }) => told)).toEqual([
    ["accepted", "fault agent_disconnected"],
    ["accepted"],
    [],
  ]);
});

test("a beat of another boot of its machine ends no job of this one", async () => {
  const { machine, run, settle } = gatewayOnBroker();
  machine.listen();
  const { id, told } = await run();
  machine.say(id, "accept", { state: "running" });
  const older = encodeJson({ epoch: `${"0".repeat(13)}-00000000`, rows: [] });
  machine.connection.publish(beatsSubject({ gateway, machine: machine.name }), encodeFrame({ kind: "beat" }, older));
  await settle();
  expect(told).toEqual(["accepted"]);
});
