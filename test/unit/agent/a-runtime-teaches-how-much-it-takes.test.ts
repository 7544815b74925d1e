import { describe, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { LearntSlots, tryOneMoreMs } from "../../../services/agent/jobs/learn-slots.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";

describe("how many jobs a runtime takes at once", () => {
  test("is what it had room for when it refused one more, and is tried again with time", () => {
    const learnt = new LearntSlots();
    expect(learnt.limit("a", 8, 0)).toBe(8);
    learnt.refused("a", 3, 0);
    const limits = [0, tryOneMoreMs - 1, tryOneMoreMs, tryOneMoreMs * 4, tryOneMoreMs * 9].map((nowMs) =>
      learnt.limit("a", 8, nowMs),
    );
    expect(limits).toEqual([3, 3, 4, 7, 8]);
    expect(learnt.limit("b", 8, 0)).toBe(8);
  });

  test("is not learnt from a refusal while nothing else of ours ran", () => {
    const learnt = new LearntSlots();
    learnt.refused("a", 0, 0);
    expect(learnt.limit("a", 2, 0)).toBe(2);
  });

  test("bounds the jobs that are started after it", async () => {
    const { gateway, runtime, jobs, settle } = await agentOnBroker({ slots: 3, queueMax: 5 });
    for (let count = 0; count < 3; count += 1) await gateway.send();
    runtime.begun(2).fail(new Fault("server_is_overloaded", { message: "too much" }));
    await settle();
    await gateway.send();
    expect(jobs.load).toMatchObject({ running: 2, queued: 1 });
  });
});
