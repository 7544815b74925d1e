import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { Model } from "#shared/protocol/model.ts";
import { RouteRecords, type RouteTable } from "../../../services/gateway/fleet/route-records.ts";
import { listModels, resolveModel } from "../../../services/gateway/requests/resolve-model.ts";
import { type MachineAnswer, mergeCatalogues } from "../../../services/gateway/jobs/live-models.ts";
import { modelOf, nothing } from "./machines-of-a-fleet.ts";
import { key, tableOf } from "./routes-and-keys.ts";
import type { RouteRecord } from "#shared/records/route-record.ts";
import { until } from "../../harness/until.ts";

/** The models that a name leads to, in order; or the code of the refusal. */
function targetsOf(asked: string, terms: Partial<KeyRecord>, table: RouteTable): readonly string[] | string {
  try {
    const { targets } = resolveModel(asked, key(terms), table);
    return targets.map(({ modelId, machines, external }) =>
      [modelId, ...(machines ?? []), ...(external ? ["external"] : [])].join(" "),
    );
  } catch (thrown) {
    return Fault.from(thrown).code;
  }
}

const manyRoutes = tableOf({
  "claude-sonnet-4": ["qwen3-coder:30b", "gpt-oss:20b"],
  "claude-*": ["llama3.2"],
  "claude-opus-*": ["qwen3-coder:480b"],
  "*-mini": ["gemma3:4b"],
  "qwen3:8b": ["qwen3:30b", "qwen3:8b"],
  loop: ["claude-sonnet-4"],
  "by-the-cloud": ["gpt-oss:20b", { model: "gpt-5", external: true }],
  labelled: [
    { model: "llama3.2", label: "fast" },
    { model: "qwen3", label: "none-has-it" },
  ],
  "on-machines": [{ model: "llama3.2", machines: ["attic", "loft"] }, "llama3.2"],
});
test.each<[asked: string, terms: Partial<KeyRecord>, targets: readonly string[] | string]>([
  ["llama3.2", {}, ["llama3.2"]],
  ["llama3.2", { machines: ["attic"] }, ["llama3.2 attic"]],
  // A name comes before a pattern, and the longest pattern before the others.
  ["claude-sonnet-4", {}, ["qwen3-coder:30b", "gpt-oss:20b"]],
  ["claude-haiku", {}, ["llama3.2"]],
  ["claude-opus-4", {}, ["qwen3-coder:480b"]],
  ["claude-4-mini", {}, ["llama3.2"]],
  ["gpt-4o-mini", {}, ["gemma3:4b"]],
  // A route comes before a model of its name, and leads to models only.
  ["qwen3:8b", {}, ["qwen3:30b", "qwen3:8b"]],
  ["loop", {}, ["claude-sonnet-4"]],
  // The name and the target both have to be within the scopes.
  ["claude-sonnet-4", { scopes: ["claude-*"] }, "model_not_found"],
  ["claude-sonnet-4", { scopes: ["qwen3-coder", "gpt-oss"] }, "model_not_found"],
  ["claude-sonnet-4", { scopes: ["claude-*", "gpt-oss"] }, ["gpt-oss:20b"]],
  ["qwen3:8b", { scopes: ["qwen3:8b"] }, ["qwen3:8b"]],
  // No scope leads elsewhere: the key has to be issued for that.
  ["by-the-cloud", {}, ["gpt-oss:20b"]],
  ["by-the-cloud", { external: true }, ["gpt-oss:20b", "gpt-5 external"]],
  ["by-the-cloud", { external: true, scopes: ["by-the-cloud", "gpt-oss"] }, ["gpt-oss:20b"]],
  ["by-the-cloud", { scopes: ["by-the-cloud", "gpt-5"] }, "model_not_found"],
  ["gpt-5", { external: true }, ["gpt-5"]],
  // So do the machines of a key that is bound to some.
  ["on-machines", {}, ["llama3.2 attic loft", "llama3.2"]],
  ["on-machines", { machines: ["loft", "shed"] }, ["llama3.2 loft", "llama3.2 loft shed"]],
  ["on-machines", { machines: ["shed"] }, ["llama3.2 shed"]],
  ["labelled", {}, ["llama3.2 m1 m3"]],
  ["labelled", { machines: ["m3", "shed"] }, ["llama3.2 m3"]],
  ["labelled", { machines: ["shed"] }, "model_not_found"],
])("a name that a client asks for %j of a key with %j leads to %j", (asked, terms, targets) => {
  expect(targetsOf(asked, terms, manyRoutes)).toEqual(targets);
});

test("a key that may not use the name without its tag does not get it by way of a route", () => {
  const tagged = tableOf({ gpt: ["llama3:latest"] });
  const isExact = (...scopes: string[]) => resolveModel("gpt", key({ scopes }), tagged).targets[0]?.isExact;
  expect([isExact("gpt", "llama3:latest"), isExact("gpt", "llama3")]).toEqual([true, false]);
});

const large = modelOf("qwen3-coder:30b", { context_window: 262_144, capabilities: { ...nothing, tools: true } });
const small = modelOf("gpt-oss:20b", { context_window: 8_192 });
const other = modelOf("llama3.2");
const answers: readonly MachineAnswer[] = [
  { machine: "attic", external: false, answer: [large, other] },
  { machine: "loft", external: false, answer: [small, other] },
  { machine: "shed", external: false, answer: "nothing" },
];
const listed = (routes: RouteTable, terms: Partial<KeyRecord> = {}, from = answers): readonly Model[] => {
  const catalogues = from.flatMap(({ answer, external }) => (typeof answer === "string" || external ? [] : [answer]));
  return listModels({ models: mergeCatalogues(catalogues), answers: from, unanswered: [] }, key(terms), routes);
};
const ids = (...list: Parameters<typeof listed>): readonly string[] => listed(...list).map(({ id }) => id);

test("the list of models without routes has the models within the scopes", () => {
  expect(ids(tableOf({}), { scopes: ["llama3.2"] })).toEqual(["llama3.2"]);
  expect(listed(tableOf({}))).toEqual([small, other, large]);
});

test("the list of models has a route as its first target that a machine offers, and no pattern", () => {
  const routes = tableOf({ "claude-sonnet-4": ["qwen3:480b", "gpt-oss:20b", "llama3.2"], "claude-*": ["llama3.2"] });
  expect(listed(routes)).toEqual([{ ...small, id: "claude-sonnet-4" }, small, other, large]);
});

test("the list of models has a route only if its name and one of its targets are in scope", () => {
  const routes = tableOf({ coder: ["qwen3-coder:30b", "gpt-oss:20b"] });
  expect(ids(routes, { scopes: ["coder"] })).toEqual([]);
  expect(listed(routes, { scopes: ["coder", "gpt-oss"] })).toEqual([{ ...small, id: "coder" }, small]);
  expect(ids(routes, { scopes: ["gpt-oss"] })).toEqual(["gpt-oss:20b"]);
});

test("the list of models has under the name of a model what a route of that name leads to, or nothing", () => {
  const routes = tableOf({ "llama3.2": ["gpt-oss:20b"], "qwen3-*": [{ model: "llama3.2", machines: ["shed"] }] });
  expect(listed(routes)).toEqual([small, { ...small, id: "llama3.2" }]);
});

test("the list of models has no model that runs elsewhere, but a route that leads there, for keys that may", () => {
  const cloud = { machine: "cloud", external: true, answer: [modelOf("gpt-5"), modelOf("llama3.2")] };
  const routes = tableOf({
    best: [{ model: "gpt-5", external: true }],
    near: ["gpt-5"],
    five: [{ model: "gpt-5", machines: ["cloud"] }],
  });
  const may = { external: true } as const;
  expect(ids(routes, may, [...answers, cloud])).toEqual(["best", "gpt-oss:20b", "llama3.2", "qwen3-coder:30b"]);
  expect(ids(routes, {}, [...answers, cloud])).toEqual(["gpt-oss:20b", "llama3.2", "qwen3-coder:30b"]);
  expect(ids(routes, may, [cloud])).toEqual(["best"]);
});

test("the list of models judges a target by the machines that it names", () => {
  const routes = tableOf({ coder: [{ model: "llama3.2", machines: ["loft"] }] });
  const without = answers.filter(({ machine }) => machine !== "loft");
  expect([ids(routes).includes("coder"), ids(routes, {}, without).includes("coder")]).toEqual([true, false]);
});

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
  const modelFor = (asked: string): string | undefined => routes.table.find(asked)?.targets[0]?.model;
  expect([modelFor("gpt-4o"), modelFor("claude-opus-4")]).toEqual(["llama3.2", undefined]);

  kept.set("claude-*", route("claude-*", "qwen3"));
  routes.follow.changed("claude-*");
  await until(() => modelFor("claude-opus-4") === "qwen3", { what: "the new route" });

  isAway = true;
  kept.delete("gpt-4o");
  routes.follow.changed("gpt-4o");
  await until(() => reads === 3, { what: "a read that fails" });
  expect(modelFor("gpt-4o")).toBe("llama3.2");

  isAway = false;
  await until(
    () => {
      routes.follow.heard();
      return modelFor("gpt-4o") === undefined;
    },
    { what: "the route to be gone" },
  );
  kept.clear();
  routes.follow.changed();
  await until(() => modelFor("claude-opus-4") === undefined, { what: "all routes to be read" });
});
