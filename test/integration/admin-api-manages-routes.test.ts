import { expect, test } from "vitest";
import { onEachStore } from "./admin-api-on-each-store.ts";

onEachStore((managed) => {
  test("a route is made, shown as it can be sent again, listed, changed, removed and in the log", async () => {
    const { ask, read, changes } = await managed();
    const targets = [
      { model: "qwen3:30b", machines: ["attic"] },
      { model: "m", label: "fast" },
      { model: "gpt-5", external: true },
    ];
    const set = await ask("PUT", "/routes/claude-*", { targets });
    expect(set).toMatchObject({ status: 200, json: { route: "claude-*", targets } });
    expect({ ...(await read("/routes/claude-*")).json, outcome: "changed" }).toEqual(set.json);
    const slashed = await ask("PUT", `/routes/${encodeURIComponent("org/name:tag")}`, { targets: [{ model: "m" }] });
    expect(slashed.json).toMatchObject({ route: "org/name:tag" });
    expect((await read("/routes")).json).toMatchObject({
      object: "list",
      data: [{ route: "claude-*" }, { route: "org/name:tag" }],
    });
    await ask("PUT", "/routes/claude-*", { targets: [{ model: "llama3.2" }] });
    expect((await ask("DELETE", "/routes/claude-*")).json).toEqual({ route: "claude-*", state: "removed" });
    expect(await read("/routes/claude-*")).toMatchObject({
      status: 404,
      json: { error: { code: "route_not_found", param: "route" } },
    });
    expect(await changes()).toMatchObject([
      { action: "route_set", route: "claude-*", key: null, machine: null },
      { route: "org/name:tag" },
      { detail: { targets: ["llama3.2"], was: { targets: ["qwen3:30b on attic", "m with fast", "gpt-5 external"] } } },
      { action: "route_removed" },
    ]);
  });

  test.each([
    [{}, "missing_required_parameter", "targets"],
    [{ targets: [] }, "empty_array", "targets"],
    [{ targets: Array.from({ length: 9 }, () => ({ model: "m" })) }, "array_above_max_length", "targets"],
    [{ targets: [{ model: "llama*" }] }, "invalid_value", "targets[0].model"],
    [{ targets: [{ model: "m", machines: ["The Attic"] }] }, "invalid_value", "targets[0].machines[0]"],
    [{ targets: [{ model: "m", label: "Fast" }] }, "invalid_value", "targets[0].label"],
    [{ targets: [{ model: "m", label: "fast", machines: ["attic"] }] }, "invalid_value", "targets[0].label"],
    [{ targets: [{ model: "m", colour: "red" }] }, "unsupported_parameter", "targets[0].colour"],
    [{ targets: [{ model: "m", external: false }] }, "invalid_value", "targets[0].external"],
  ])("a route with %j is refused with what is wrong", async (body, code, param) => {
    const { ask } = await managed();
    expect(await ask("PUT", "/routes/gpt-4o", body)).toMatchObject({ status: 400, json: { error: { code, param } } });
  });
});
