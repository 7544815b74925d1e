import { expect, test } from "vitest";
import { rowOf } from "../contract/limits-book.contract.ts";
import { onEachStore } from "./admin-api-on-each-store.ts";

const none = { input: null, cached: null, output: null, second: null, image: null, request: null };

onEachStore((managed) => {
  test("prices are set, replaced as a whole, listed with the models that have none, removed, and in the trail", async () => {
    const { api, ask, read, changes } = await managed();
    api.usage.push(rowOf({ model: "qwen3:8b" }), rowOf({ model: "llama3.2" }), rowOf({ model: null }));
    const set = await ask("PUT", "/prices/qwen*", { input: "0.2", cached: "0.02", output: "1000000" });
    expect(set.json).toMatchObject({ ...none, price: "qwen*", input: "0.20", cached: "0.02", output: "1000000.00" });
    const external = `/prices/${encodeURIComponent("gpt-5 external")}`;
    await ask("PUT", external, { request: "0.000001" });
    expect((await ask("PUT", "/prices/qwen*", { image: "0" })).json).toMatchObject({
      ...none,
      image: "0.00",
      outcome: "changed",
    });
    expect((await ask("PUT", "/prices/qwen*", { image: "0.0" })).json).toMatchObject({ outcome: "unchanged" });
    expect((await read("/prices")).json).toMatchObject({
      data: [{ price: "gpt-5 external", request: "0.000001" }, { price: "qwen*" }],
      currency: "units",
      without: ["llama3.2"],
    });
    expect((await ask("DELETE", external)).json).toEqual({ price: "gpt-5 external", state: "removed" });
    expect(await read(external)).toMatchObject({
      status: 404,
      json: { error: { code: "price_not_found", param: "price" } },
    });
    expect(await changes()).toMatchObject([
      { action: "price_set", price: "qwen*", detail: { input: "0.20", cached: "0.02", output: "1000000.00" } },
      { price: "gpt-5 external" },
      { detail: { image: "0.00", was: { input: "0.20", cached: "0.02", output: "1000000.00" } } },
      { action: "price_removed", price: "gpt-5 external", detail: { was: { request: "0.000001" } } },
    ]);
  });

  test("a viewer reads prices and sets none", async () => {
    const { api } = await managed();
    const key = (await api.issue({ kind: "viewer" })).token.reveal();
    expect((await api.ask("PUT", "/prices/m", { key, body: { input: "1" } })).status).toBe(403);
    expect((await api.ask("GET", "/prices", { key })).json).toMatchObject({ data: [] });
  });

  test.each([
    [{}, "input"],
    [{ input: "-1" }, "input"],
    [{ input: "1e308" }, "input"],
    [{ output: "9".repeat(309) }, "output"],
    [{ output: "NaN" }, "output"],
    [{ output: "1000000.000001" }, "output"],
    [{ cached: "0.0000001" }, "cached"],
    [{ second: 0.2 }, "second"],
    [{ second: null }, "second"],
    [{ colour: "1" }, "colour"],
  ])("prices of %j are refused with what is wrong", async (body, param) => {
    const { ask } = await managed();
    const { status, json } = await ask("PUT", "/prices/m", body);
    expect({ status, json }).toMatchObject({ status: 400, json: { error: { param } } });
    if (/(?:in|out)put":"/.test(JSON.stringify(body)))
      expect(json).toMatchObject({ error: { message: expect.stringContaining("1000000") } });
  });

  test.each(["two words", "a\u0007b", "m".repeat(600)])("the name %j is refused for a price", async (name) => {
    const { ask } = await managed();
    expect((await ask("PUT", `/prices/${encodeURIComponent(name)}`, { input: "1" })).status).toBe(400);
  });
});
