import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { end, FollowerOnAWire, timing } from "./follower-on-a-wire.ts";

describe("an answer", () => {
  test("is passed on piece by piece as it comes, and ends once", () => {
    const wire = new FollowerOnAWire().accept();
    wire.data(1, "Hel");
    wire.data(2, "lo");
    wire.hear("end", end, 3);
    wire.hear("end", end, 3);
    wire.data(4, "late");
    expect(wire.told).toEqual(["accepted", "Hel", "lo", "end"]);
    expect(wire.outcomes).toEqual([{ outcome: "end", end }]);
    expect(wire.take()).toEqual(["job", "finish"]);
  });

  test("ends as a fault that says what the machine said", () => {
    const wire = new FollowerOnAWire().accept();
    wire.data(1, "Hel");
    wire.hear("fault", { code: "context_length_exceeded", message: "Too long.", param: "messages" }, 2);
    expect(wire.outcomes).toMatchObject([
      { outcome: "fault", fault: { code: "context_length_exceeded", message: "Too long.", param: "messages" } },
    ]);
    expect(wire.take()).toEqual(["job", "finish"]);
  });

  test.each([
    ["a code that this build does not know", { code: "gpu_on_fire", message: "Hot." }, "upstream_error"],
    ["what is no fault at all", { what: "?" }, "agent_disconnected"],
    ["that the machine cancelled by itself", { code: "cancelled", message: "" }, "agent_disconnected"],
  ])("that ends by %s is a fault all the same", (_, payload, code) => {
    const wire = new FollowerOnAWire().accept();
    wire.hear("fault", payload, 1);
    expect(wire.told).toEqual(["accepted", `fault ${code}`]);
  });

  test("whose end cannot be read is no success", () => {
    const wire = new FollowerOnAWire().accept();
    wire.hear("end", { finishReason: "because" }, 1);
    expect(wire.told).toEqual(["accepted", "fault agent_disconnected"]);
  });

  test("is passed on without repeats, up to the first hole and not beyond; then the machine is told to stop", () => {
    const arrivals = fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 30 });
    fc.assert(
      fc.property(arrivals, (sequences) => {
        const wire = new FollowerOnAWire().accept();
        let next = 1;
        let gap = false;
        for (const sequence of sequences) {
          if (!gap && sequence === next) next += 1;
          gap ||= sequence > next;
          wire.data(sequence, `${sequence}`);
        }
        const passed = Array.from({ length: next - 1 }, (_, place) => `${place + 1}`);
        expect(wire.told).toEqual(["accepted", ...passed, ...(gap ? ["fault stream_gap"] : [])]);
        expect(wire.take()).toEqual(["job", ...(gap ? ["cancel gave_up"] : [])]);
      }),
    );
  });

  test("whose last frames were lost is noticed by the beat that tells of them", () => {
    const wire = new FollowerOnAWire().accept();
    wire.data(1, "Hel");
    wire.beat("running", 1);
    expect(wire.outcomes).toEqual([]);
    wire.beat("running", 2);
    expect(wire.told.at(-1)).toBe("fault stream_gap");
    expect(wire.take()).toEqual(["job", "cancel gave_up"]);
  });

  test("of which only the terminal frame was lost waits for it to be repeated", () => {
    const wire = new FollowerOnAWire().accept();
    wire.data(1, "Hel");
    wire.beat("ended", 2);
    wire.hear("end", end, 2);
    expect(wire.told).toEqual(["accepted", "Hel", "end"]);
  });

  test("that ended with more than the terminal frame lost has a hole", () => {
    const wire = new FollowerOnAWire().accept();
    wire.data(1, "Hel");
    wire.beat("ended", 3);
    expect(wire.told.at(-1)).toBe("fault stream_gap");
  });

  test("of a job that its machine does not have any more has broken off", () => {
    const wire = new FollowerOnAWire().accept();
    wire.follower.beat(undefined, wire.nowMs);
    expect(wire.told).toEqual(["accepted", "fault agent_disconnected"]);
  });

  test.each([
    ["client_closed", "client_closed"],
    ["slow_client", "slow_client"],
    ["shutting_down", "gave_up"],
  ] as const)("that nobody wants any more, by %s, is cancelled at the machine", (code, reason) => {
    const wire = new FollowerOnAWire().accept();
    wire.data(1, "Hel");
    wire.follower.cancel(new Fault(code, { message: "Enough." }));
    wire.data(2, "lo");
    wire.follower.cancel(new Fault(code, { message: "Enough." }));
    wire.pass(timing.lostAfterMs * 2);
    expect(wire.told).toEqual(["accepted", "Hel", `fault ${code}`]);
    expect(wire.take()).toEqual(["job", `cancel ${reason}`]);
  });
});
