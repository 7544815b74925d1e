import { describe, expect, test } from "vitest";
import { routesMax, type RouteStore } from "#shared/records/route-record.ts";
import { issueOn } from "./key-changes.contract.ts";
import { HeardChanges } from "./key-changes-heard.ts";
import type { KeyPlace } from "./key-store-place.ts";
import { removeRoute, setRoute } from "../harness/set-records.ts";

const dependenciesOn = (routes: RouteStore) => ({
  routes,
  keys: { awaitReplica: async () => "none" as const },
  clock: { wall: () => 1_800_000_000_000 },
  actor: { by: "the operator", request: "req_1" },
});
const set = (routes: RouteStore, name: string, ...models: string[]) =>
  setRoute(
    name,
    models.map((model) => ({ model })),
    dependenciesOn(routes),
  );
const remove = (routes: RouteStore, name: string) => removeRoute(name, dependenciesOn(routes));

export function routeStoreContract(adapter: string, makePlace: () => Promise<KeyPlace>): void {
  /** A store that a key has founded. */
  async function founded() {
    const place = await makePlace();
    const keys = await place.open();
    const key = await issueOn(keys);
    return { place, keys, key, routes: (await place.openNamed()).routes };
  }

  describe(`routes in ${adapter}`, () => {
    test("a route that one process sets is there for all, by name and in the list of all", async () => {
      const { place, routes } = await founded();
      await set(routes, "claude-*", "qwen3-coder:30b", "gpt-oss:20b");
      await setRoute("a/b:c", [{ model: "llama3.2", machines: ["attic"] }], dependenciesOn(routes));
      const elsewhere = (await place.openNamed()).routes;
      expect(await elsewhere.find("claude-*")).toEqual({
        name: "claude-*",
        version: 1,
        targets: [{ model: "qwen3-coder:30b" }, { model: "gpt-oss:20b" }],
        createdAt: 1_800_000_000_000,
        changedAt: 1_800_000_000_000,
      });
      expect(await elsewhere.find("claude-sonnet-4")).toBeUndefined();
      expect((await elsewhere.list()).map(({ name, targets }) => [name, targets.length])).toEqual([
        ["a/b:c", 1],
        ["claude-*", 2],
      ]);
    });

    test("a route is replaced, reported as unchanged when it was so before, and removed once", async () => {
      const { routes } = await founded();
      expect(await set(routes, "gpt-4o", "llama3.2")).toMatchObject({ outcome: "changed", record: { version: 1 } });
      expect((await set(routes, "gpt-4o", "llama3.2")).outcome).toBe("unchanged");
      expect((await set(routes, "gpt-4o", "qwen3")).record).toMatchObject({
        version: 2,
        targets: [{ model: "qwen3" }],
      });
      await remove(routes, "gpt-4o");
      await expect(remove(routes, "gpt-4o")).rejects.toMatchObject({ code: "route_not_found", param: "route" });
      expect(await routes.list()).toEqual([]);
    });

    test("a route that somebody else has changed meanwhile stays as that one left it", async () => {
      const { place, routes } = await founded();
      const { record } = await set(routes, "gpt-4o", "llama3.2");
      await set((await place.openNamed()).routes, "gpt-4o", "qwen3");
      const entry = { at: 1, by: "somebody", action: "route_set", route: "gpt-4o", name: "gpt-4o" } as const;
      expect(await routes.write({ ...record, version: 2 }, entry)).toBe("conflict");
      expect(await routes.write({ ...record, version: 1 }, entry)).toBe("conflict");
      expect(await routes.remove(record, entry)).toBe("conflict");
      expect((await routes.find("gpt-4o"))?.targets).toEqual([{ model: "qwen3" }]);
      await Promise.all(Array.from({ length: 10 }, (_, at) => set(routes, "gpt-4o", `m${at}`)));
      expect((await routes.find("gpt-4o"))?.version).toBe(12);
    });

    test("a target with a field that this build does not know is left out, and all other targets and routes stay", async () => {
      const { place, routes } = await founded();
      const { record } = await set(routes, "gpt-4o", "llama3.2", "qwen3");
      await set(routes, "gpt-5", "llama3.2");
      const [first = { model: "" }, ...others] = record.targets;
      const newer = { ...record, version: 2, targets: [Object.assign({ region: "eu" }, first), ...others] };
      const entry = { at: 1, by: "a newer build", action: "route_set", route: "gpt-4o", name: "gpt-4o" } as const;
      expect(await routes.write(newer, entry)).toBe("written");
      const read = (await (await place.openNamed()).routes.list()).map(({ name, targets }) => [name, targets]);
      expect(read).toEqual([
        ["gpt-4o", [{ model: "qwen3" }]],
        ["gpt-5", [{ model: "llama3.2" }]],
      ]);
    });

    test("a field of a newer version stays in the record when this build sets the route's targets", async () => {
      const { place, routes } = await founded();
      const newer = { name: "gpt-4o", version: 1, targets: [], createdAt: 1, changedAt: 1, weight: 7 };
      await routes.write(newer, { at: 1, by: "a newer one", action: "route_set", route: "gpt-4o", name: "gpt-4o" });
      await setRoute("gpt-4o", [{ model: "m" }], dependenciesOn(routes));
      expect(await (await place.openNamed()).routes.find("gpt-4o")).toMatchObject({ version: 2, weight: 7 });
    });

    test("each change of a route is in the audit trail of the keys, with what was before", async () => {
      const { keys, key, routes } = await founded();
      await set(routes, "gpt-4o", "llama3.2");
      await setRoute("gpt-4o", [{ model: "qwen3", machines: ["attic", "loft"] }], dependenciesOn(routes));
      await remove(routes, "gpt-4o");
      const by = { by: "the operator", request: "req_1", route: "gpt-4o", name: "gpt-4o" };
      const onTwo = ["qwen3 on attic,loft"];
      expect((await keys.log({ entriesMax: 10 })).slice(1)).toMatchObject([
        { ...by, action: "route_set", detail: { targets: ["llama3.2"] } },
        { ...by, action: "route_set", detail: { targets: onTwo, was: { targets: ["llama3.2"] } } },
        { ...by, action: "route_removed", detail: { was: { targets: onTwo } } },
      ]);
      expect((await keys.log({ entriesMax: 10, keys: [key] })).map(({ action }) => action)).toEqual(["issued"]);
    });

    test("a follower of the keys is told of each change of a route, and misses no change of a key", async () => {
      const { place, keys, routes } = await founded();
      const heard = new HeardChanges(await place.openChanges());
      await heard.untilTold("gap");
      const before = await issueOn(keys);
      await set(routes, "gpt-4o", "llama3.2");
      await heard.untilTold("route");
      const mark = heard.mark();
      await remove((await place.openNamed()).routes, "gpt-4o");
      const after = await issueOn(keys);
      await heard.untilIds(2);
      await heard.untilTold("route", { since: mark });
      expect([heard.ids, heard.gaps]).toEqual([[before, after], 1]);
    });

    test("a store that no key has founded takes no route, and says how to begin", async () => {
      const { routes } = await (await makePlace()).openNamed();
      await expect(set(routes, "gpt-4o", "llama3.2")).rejects.toMatchObject({
        code: "backend_unavailable",
        internal: expect.stringContaining("issue a key"),
      });
      expect(await routes.list()).toEqual([]);
    });

    test("a store holds a bounded number of routes, and the refusal names the bound", async () => {
      const { routes } = await founded();
      const full: RouteStore = {
        list: async () => Array.from({ length: routesMax }),
        find: (name) => routes.find(name),
        write: (record, entry) => routes.write(record, entry),
        remove: (record, entry) => routes.remove(record, entry),
      };
      await set(routes, "gpt-4o", "llama3.2");
      await expect(set(full, "gpt-5", "llama3.2")).rejects.toMatchObject({
        code: "route_change_refused",
        message: expect.stringContaining("routesMax"),
      });
      expect((await set(full, "gpt-4o", "qwen3")).outcome).toBe("changed");
    });
  });
}
