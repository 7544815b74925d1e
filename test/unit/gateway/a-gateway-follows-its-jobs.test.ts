import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import { replySubject } from "#shared/protocol/subjects.ts";
import { keptBodyBytesMax } from "../../../services/gateway/jobs/open-jobs.ts";
import { end } from "./follower-on-a-wire.ts";
import { gateway, gatewayOnBroker } from "./gateway-on-a-broker.ts";

test("a job of a gateway reaches its machine with its head and body, and its answer comes back", async () => {
  const { machine, open, run, settle, pass, timing } = gatewayOnBroker();
  machine.listen();
  const { id, told } = await run({ body: Buffer.from("the request") });
  expect(machine.jobs).toEqual([
    {
      head: {
        id,
        kind: "chat",
        model: "llama3",
        keyId: "key",
        remainingMs: 600_000,
        bodyBytes: 11,
        credit: limits.wholeCreditBytes,
      },
      body: Buffer.from("the request"),
      reply: replySubject({ gateway, machine: "gpu-1", job: id }),
    },
  ]);
  expect(open.size).toBe(1);
  machine.say(id, "accept", { state: "queued" });
  machine.say(id, "data", "Hello", 1);
  machine.say(id, "end", end, 2);
  await settle();
  expect(told).toEqual(["accepted", "Hello", "end"]);
  expect(open.size).toBe(0);
  await pass(timing.acceptWaitMs / 6);
  expect(machine.controls).toEqual([{ kind: "finish", jobs: [id], gateway }]);
});

test("a job of a gateway follows in parts when its body is larger than one", async () => {
  const { machine, run, settle } = gatewayOnBroker();
  machine.listen();
  const body = Buffer.alloc(2 * limits.partBytes + 5, "0123456789");
  const { id } = await run({ body });
  const sha256 = createHash("sha256").update(body).digest("hex");
  expect(machine.jobs).toMatchObject([{ head: { bodyBytes: body.byteLength, sha256 }, body: { byteLength: 0 } }]);
  machine.say(id, "accept", { state: "receiving" });
  await settle();
  expect(machine.parts.map(({ offset }) => offset)).toEqual([0, limits.partBytes, 2 * limits.partBytes]);
  expect(Buffer.concat(machine.parts.map(({ bytes }) => bytes)).equals(body)).toBe(true);
});

test("a job of a size that one message carries goes in one", async () => {
  const { machine, run } = gatewayOnBroker();
  machine.listen();
  const body = Buffer.alloc(limits.partBytes, "x");
  await run({ body });
  expect(machine.jobs.map((job) => [job.head.sha256, job.body.byteLength])).toEqual([[undefined, limits.partBytes]]);
});

test("a job of a gateway was not taken when nobody is on its machine's subject, after one more try; the machine counts as away", async () => {
  const { run, pass, timing, roster, clock } = gatewayOnBroker();
  const { told } = await run();
  expect(told).toEqual([]);
  await pass(timing.retryAfterNobodyMs);
  expect(told).toEqual(["not-taken agent_offline"]);
  expect(roster.present(clock.now()).map(({ presence }) => presence.machine)).toEqual(["gpu-2"]);
});

test("a job of a gateway ends as agent_offline when its machine got it and is gone before the accept", async () => {
  const { machine, run, pass, timing } = gatewayOnBroker();
  machine.listen();
  const { told } = await run();
  machine.connection.cut();
  await pass(timing.acceptWaitMs * 1.5);
  expect(told).toEqual(["fault agent_offline"]);
});

test("a job of a gateway is cancelled at its machine when its client leaves, and counts as taken by one that just got it", async () => {
  const { machine, run, settle } = gatewayOnBroker();
  machine.listen();
  const [waiting, running] = [await run(), await run()];
  machine.say(running.id, "accept", { state: "running" });
  await settle();
  waiting.leave();
  running.leave();
  await settle();
  for (const { told } of [waiting, running]) expect(told).toEqual(["accepted", "fault client_closed"]);
  expect(machine.controls).toEqual(
    [waiting, running].map(({ id }) => ({ kind: "cancel", job: id, reason: "client_closed" })),
  );
});

test("a job of a gateway counts as taken by nobody when its client leaves a machine that says nothing", async () => {
  const { machine, run, settle, pass, timing } = gatewayOnBroker();
  machine.listen();
  const { told, leave } = await run();
  await pass(timing.acceptWaitMs * 1.5);
  leave();
  await settle();
  expect(told).toEqual(["fault client_closed"]);
});

test("a job of a gateway is not even sent when its client has left already, or the gateway is cut off", async () => {
  const { machine, broker, run, settle } = gatewayOnBroker();
  machine.listen();
  expect((await run({ aborted: true })).told).toEqual(["fault client_closed"]);
  broker.cut();
  expect((await run()).told).toEqual(["fault backend_unavailable"]);
  broker.restore();
  await settle();
  expect(machine.jobs).toEqual([]);
});

test("a job of a gateway survives that the gateway is cut off for a while, and ends when that lasts", async () => {
  const { machine, broker, run, settle, pass, timing } = gatewayOnBroker();
  machine.listen();
  const { id, told } = await run();
  machine.say(id, "accept", { state: "running" });
  await settle();
  broker.cut();
  await pass(timing.lostAfterMs * 2);
  broker.restore();
  await pass(timing.lostAfterMs - timing.beatIntervalMs);
  machine.say(id, "data", "Hello", 1);
  await settle();
  expect(told).toEqual(["accepted", "Hello"]);
  broker.cut();
  await pass(timing.lostAfterMs * 4);
  expect(told).toEqual(["accepted", "Hello", "fault backend_unavailable"]);
});

test("a job of a gateway keeps its machine told that the gateway lives, from the first on and for as long as it is open", async () => {
  const { machine, run, settle, pass, timing } = gatewayOnBroker();
  machine.listen();
  await pass(timing.leaseIntervalMs * 3);
  expect(machine.leases).toEqual([]);
  const [one] = [await run(), await run()];
  expect(machine.leases).toEqual([gateway]);
  await pass(timing.leaseIntervalMs * 2);
  expect(machine.leases).toHaveLength(3);
  for (const { id } of machine.jobs.map(({ head }) => head)) machine.say(id, "end", end, 1);
  await settle();
  expect(one.told).toEqual(["accepted", "end"]);
  await pass(timing.leaseIntervalMs * 2);
  expect(machine.leases).toHaveLength(3);
});

test("a job of a gateway that comes a moment after another is no reason to tell its machine again", async () => {
  const { machine, run, settle, pass, timing } = gatewayOnBroker();
  machine.listen();
  for (let jobs = 1; jobs <= 3; jobs += 1) {
    await run();
    machine.say(machine.jobs.at(-1)?.head.id ?? "", "end", end, 1);
    await settle();
  }
  expect(machine.leases).toHaveLength(1);
  await pass(timing.leaseIntervalMs);
  await run();
  expect(machine.leases).toHaveLength(2);
});

test("a job of a gateway asks for what was sent while the gateway was cut off, and leases its machine at once", async () => {
  const { machine, broker, run, settle, pass, timing } = gatewayOnBroker();
  machine.listen();
  const { id, told } = await run();
  machine.say(id, "accept", { state: "running" });
  machine.say(id, "data", "Hel", 1);
  await settle();
  broker.cut();
  machine.say(id, "data", "lo", 2);
  await pass(timing.lostAfterMs);
  const leases = machine.leases.length;
  machine.takeControls();
  broker.restore();
  await settle();
  expect(machine.leases).toHaveLength(leases + 1);
  expect(machine.takeControls()).toMatchObject([{ kind: "attach", job: id, from: 2, keyId: "key" }]);
  machine.say(id, "data", "lo", 2);
  machine.say(id, "end", end, 3);
  await settle();
  expect(told).toEqual(["accepted", "Hel", "lo", "end"]);
});

test("a job of a gateway is ended with all the others when the gateway must stop", async () => {
  const { machine, open, run, settle } = gatewayOnBroker();
  machine.listen();
  const jobs = [await run(), await run()];
  open.cancelAll(new Fault("shutting_down", { message: "This gateway shuts down." }));
  await settle();
  for (const { told } of jobs) expect(told).toEqual(["accepted", "fault shutting_down"]);
  expect(machine.controls.map((told) => told.kind)).toEqual(["cancel", "cancel"]);
});

test("a job of a gateway is refused when the bodies under way are too many bytes, and taken again when one is over", async () => {
  const { run } = gatewayOnBroker();
  const body = Buffer.alloc(limits.partBytes);
  const jobs = [];
  for (let bytes = 0; bytes < keptBodyBytesMax; bytes += body.byteLength) jobs.push(run({ body }));
  const [first] = await Promise.all(jobs);
  expect(first?.told).toEqual([]);
  expect((await run({ body: Buffer.from("x") })).told).toEqual(["fault server_is_overloaded"]);
  first?.leave();
  expect((await run({ body })).told).toEqual([]);
});
