import { expect, test } from "vitest";
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

test("a job of a size that one message carries goes in one", async () => {
  const { machine, run } = gatewayOnBroker();
  machine.listen();
  const body = Buffer.alloc(limits.partBytes, "x");
  await run({ body });
  expect(machine.jobs.map((job) => [job.head.sha256, job.body.byteLength])).toEqual([[undefined, limits.partBytes]]);
});

test("a job of a gateway ends as agent_offline when its machine got it and is gone before the accept", async () => {
  const { machine, run, pass, timing } = gatewayOnBroker();
  machine.listen();
  const { told } = await run();
  machine.connection.cut();
  await pass(timing.acceptWaitMs * 1.5);
  expect(told).toEqual(["fault agent_offline"]);
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
