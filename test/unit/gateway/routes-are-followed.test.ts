import { TurnableClock } from "../../harness/turnable-clock.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { expect, test } from "vitest";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import type { RouteRecord } from "#shared/records/route-record.ts";
import { MachineRecords } from "../../../services/gateway/fleet/machine-records.ts";
import { RouteRecords } from "../../../services/gateway/fleet/route-records.ts";
import { until } from "../../harness/until.ts";

const route = (name: string, model: string, version = 1): RouteRecord => ({
  name,
  version,
  targets: [{ model }],
  createdAt: 1,
  changedAt: version,
});

test("a gateway knows a route as soon as its change is read, and keeps all others while the store is away", async () => {
  const kept = new Map([["gpt-4o", route("gpt-4o", "llama3.2")]]);
  let isAway = false;
  let reads = 0;
  const answer = <Value>(value: Value): Promise<Value> => {
    reads += 1;
    return isAway ? Promise.reject(new Error("away")) : Promise.resolve(value);
  };
  const routes = new RouteRecords({
    routes: { list: () => answer([...kept.values()]), find: (name) => answer(kept.get(name)) },
    machines: { labelled: () => [], onChange: () => undefined },
    log: { info: () => undefined, warn: () => undefined },
  });
  await routes.load();
  const modelOf = (asked: string): string | undefined => routes.table.find(asked)?.targets[0]?.model;
  expect([modelOf("gpt-4o"), modelOf("claude-opus-4")]).toEqual(["llama3.2", undefined]);

  kept.set("claude-*", route("claude-*", "qwen3"));
  routes.follow.changed("claude-*");
  await until(() => modelOf("claude-opus-4") === "qwen3", { what: "the new route" });

  isAway = true;
  kept.delete("gpt-4o");
  routes.follow.changed("gpt-4o");
  await until(() => reads === 3, { what: "a read that fails" });
  expect(modelOf("gpt-4o")).toBe("llama3.2");

  isAway = false;
  await until(
    () => {
      routes.follow.heard();
      return modelOf("gpt-4o") === undefined;
    },
    { what: "the route to be gone" },
  );
  kept.clear();
  routes.follow.changed();
  await until(() => modelOf("claude-opus-4") === undefined, { what: "all routes to be read" });
});

test("a target with a label leads to the machines that have it, as soon as their records are read", async () => {
  const log = { info: () => undefined, warn: () => undefined };
  const attic: MachineRecord = { name: "attic", version: 1, labels: ["fast", "mac"], createdAt: 1, changedAt: 1 };
  let records: readonly MachineRecord[] = [attic, { ...attic, name: "loft", labels: ["mac"] }];
  const machines = new MachineRecords({
    machines: {
      site: async () => ({ id: "s".repeat(22) }),
      list: async () => records,
      find: async (name) => records.find((each) => each.name === name),
      findByKey: async () => undefined,
    },
    timing: timingAt(1),
    clock: new TurnableClock(),
    log,
  });
  await machines.load();
  const labelled = { ...route("coder", "qwen3"), targets: [{ model: "qwen3", label: "fast" }] };
  const routes = new RouteRecords({
    routes: { list: async () => [labelled], find: async () => labelled },
    machines,
    log,
  });
  await routes.load();
  const machinesOf = (): readonly string[] | undefined => routes.table.find("coder")?.targets[0]?.machines;
  expect(machinesOf()).toEqual(["attic"]);
  records = records.map((each) => ({ ...each, version: 2, labels: ["fast"] }));
  machines.follow.changed("loft");
  await until(() => machinesOf()?.join(" ") === "attic loft", { what: "the second machine" });
  records = records.map((each) => ({ ...each, version: 3, labels: undefined }));
  machines.follow.changed();
  await until(() => machinesOf()?.length === 0, { what: "no machine with the label" });
});
