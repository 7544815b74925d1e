import { expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { FollowerOnAWire } from "./follower-on-a-wire.ts";

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
