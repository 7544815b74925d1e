import { describe, expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { FollowerOnAWire } from "./follower-on-a-wire.ts";

describe("a body is kept", () => {
  test("until its machine has accepted the job, where it travelled inside", () => {
    const wire = new FollowerOnAWire();
    expect(wire.bodiesTaken).toBe(0);
    wire.accept();
    wire.accept();
    expect(wire.bodiesTaken).toBe(1);
  });

  test("until its last part is acknowledged, where it travels in parts", () => {
    const bytes = limits.partBytes * 2 + 1;
    const wire = new FollowerOnAWire({ partsBytes: bytes });
    wire.accept("receiving");
    wire.hear("part-ack", { received: limits.partBytes * 2 });
    expect(wire.bodiesTaken).toBe(0);
    wire.hear("part-ack", { received: bytes });
    wire.hear("part-ack", { received: bytes });
    expect(wire.bodiesTaken).toBe(1);
  });

  test("while no machine takes the job, so that another may", () => {
    const wire = new FollowerOnAWire();
    wire.hear("reject", { reason: "busy", message: "full" });
    expect(wire.told).toEqual(["not-taken server_is_overloaded"]);
    expect(wire.bodiesTaken).toBe(0);
  });
});
