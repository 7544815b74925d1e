import { expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { FollowerOnAWire, timing } from "./follower-on-a-wire.ts";

test("a body is kept until the first piece of the answer is there: before that another machine may be given it", () => {
  const wire = new FollowerOnAWire();
  wire.accept();
  wire.beat("prefill", 0);
  expect(wire.bodiesTaken).toBe(0);
  wire.data(1, "Hel");
  wire.data(2, "lo");
  expect(wire.bodiesTaken).toBe(1);
});

test("a body is kept also when all its parts have arrived", () => {
  const bytes = limits.partBytes * 2 + 1;
  const wire = new FollowerOnAWire({ partsBytes: bytes });
  wire.accept("receiving");
  wire.hear("part-ack", { received: bytes });
  expect(wire.bodiesTaken).toBe(0);
});

test("a body is kept while no machine takes the job", () => {
  const wire = new FollowerOnAWire();
  wire.hear("reject", { reason: "busy", message: "full" });
  expect(wire.told).toEqual(["not-taken server_is_overloaded"]);
  expect(wire.bodiesTaken).toBe(0);
});

test("a failure says whether anything of the answer is out, since only then no other machine can give it", () => {
  const silent = new FollowerOnAWire().accept();
  silent.pass(timing.lostAfterMs + 100);
  const talking = new FollowerOnAWire().accept();
  talking.data(1, "Hel");
  talking.pass(timing.lostAfterMs + 100);
  expect([...silent.outcomes, ...talking.outcomes]).toMatchObject([
    { kind: "fault", fault: { code: "agent_disconnected" } },
    { kind: "fault", fault: { code: "agent_disconnected" } },
  ]);
});
