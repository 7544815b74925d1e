import { expect, test } from "vitest";
import type { RouteRecord } from "#shared/records/route-record.ts";
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
