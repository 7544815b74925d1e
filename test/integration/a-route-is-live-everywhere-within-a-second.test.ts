import { afterAll, beforeAll, expect, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { removeRoute, setRoute } from "../harness/set-records.ts";
import type { RouteTarget } from "#shared/records/route-record.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { errorOf, type Endpoint } from "../harness/endpoint.ts";
import { startTwoGateways, type TwoGateways } from "../harness/two-gateways.ts";
import { until } from "../harness/until.ts";

let site: TwoGateways;
beforeAll(async () => void (site = await startTwoGateways()));
afterAll(() => site[Symbol.asyncDispose]());

const dependencies = () => {
  const { routes, keys } = site.operator.store;
  return { routes, keys, clock, actor: { by: "the operator" } };
};
const set = (name: string, ...targets: RouteTarget[]) => setRoute(name, targets, dependencies());
const says = "/script tokens=1";
const codes = (endpoints: readonly Endpoint[], model: string): Promise<readonly (string | null)[]> =>
  Promise.all(
    endpoints.map(async (endpoint) => {
      const response = await endpoint.chat({ model, says });
      return response.status === 200
        ? ((await response.json()) as { model: string }).model
        : (await errorOf(response)).code;
    }),
  );
/** Waits until both gateways answer alike, for as long as a change may take. */
const untilBoth = (endpoints: readonly Endpoint[], model: string, outcome: string): Promise<true> =>
  until(async () => (await codes(endpoints, model)).every((code) => code === outcome), {
    what: `${outcome} for ${model} at both gateways`,
    timeoutMs: 1_000,
  });

test("a route is live at all gateways within a second of each change, under the name that was asked for", async () => {
  const { endpoints } = await site.issue();
  expect(await codes(endpoints, "gpt-4o")).toEqual(["model_not_found", "model_not_found"]);
  await set("gpt-4o", { model: "scripted" });
  await untilBoth(endpoints, "gpt-4o", "gpt-4o");
  expect((await endpoints[0].models()).ids).toContain("gpt-4o");
  await set("gpt-4o", { model: "no-such-model" });
  await untilBoth(endpoints, "gpt-4o", "model_not_found");
  expect((await endpoints[1].models()).ids).not.toContain("gpt-4o");
  await set("gpt-*", { model: "scripted" });
  await removeRoute("gpt-4o", dependencies());
  await untilBoth(endpoints, "gpt-4o", "gpt-4o");
  await removeRoute("gpt-*", dependencies());
  await untilBoth(endpoints, "gpt-4o", "model_not_found");
});

test("answers of a route carry the name that was asked for, in every shape, and a header names the model", async () => {
  const { endpoints, record } = await site.issue();
  const [endpoint] = endpoints;
  await set("alias", { model: "not-there" }, { model: "scripted" });
  await set("alias-embed", { model: "scripted:embed" });
  await untilBoth(endpoints, "alias", "alias");
  const whole = await endpoint.chat({ model: "alias", says });
  expect([whole.headers.get("x-trunkline-model"), (await whole.json()) as object]).toEqual([
    "scripted",
    expect.objectContaining({ model: "alias" }),
  ]);
  const stream = await endpoint.chat({ model: "alias", says, stream: true });
  expect(stream.headers.get("x-trunkline-model")).toBe("scripted");
  const models = [...(await stream.text()).matchAll(/"model":"([^"]+)"/g)].map(([, model]) => model);
  expect(new Set(models)).toEqual(new Set(["alias"]));
  const post = async (path: string, fields: object): Promise<unknown> =>
    (await endpoint.post(path, { model: "alias", ...fields })).json();
  const messages = [{ role: "user", content: says }];
  expect(await post("/messages", { max_tokens: 9, messages })).toMatchObject({ type: "message", model: "alias" });
  expect(await post("/messages/count_tokens", { messages })).toEqual({ input_tokens: expect.any(Number) });
  expect(await post("/responses", { input: says })).toMatchObject({ object: "response", model: "alias" });
  const embedded = await endpoint.embed({ model: "alias-embed", input: "Hi" });
  expect(await embedded.json()).toMatchObject({ model: "alias-embed" });
  expect(await (await endpoint.get("/models/alias")).json()).toMatchObject({ id: "alias", object: "model" });
  const plain = await endpoint.chat({ model: "scripted", says });
  expect(plain.headers.get("x-trunkline-model")).toBeNull();
  await plain.text();
  const isBooked = async (): Promise<boolean> => {
    const rows = await site.operator.usage(record.id);
    const books = new Map(rows.map(({ model, requests }) => [model, requests]));
    return books.get("scripted:embed") === 1 && (books.get("scripted") ?? 0) >= 3 && !books.has("alias");
  };
  await until(isBooked, { what: "usage to be booked under the models that answered" });
});

test("a target with a label answers at all gateways within a second of a machine's getting the label", async () => {
  const { endpoints } = await site.issue();
  const { machines, keys } = site.operator.store;
  const label = async (...labels: string[]): Promise<unknown> => {
    const data = await endpoints[0].chat({ model: "scripted", says });
    await data.text();
    const machine = data.headers.get("x-trunkline-machine") ?? "";
    const means = { machines, keys, clock, actor: { by: "the operator" } };
    return changeMachine(machine, { action: "machine_labelled", labels }, means);
  };
  await set("labelled", { model: "scripted", label: "fast" });
  expect(await codes(endpoints, "labelled")).toEqual(["model_not_found", "model_not_found"]);
  await label("mac", "fast");
  await untilBoth(endpoints, "labelled", "labelled");
  await label("mac");
  await untilBoth(endpoints, "labelled", "model_not_found");
});

test("a key needs the name and the target in its scopes", async () => {
  await set("scoped", { model: "scripted" });
  const [both, name, target] = await Promise.all(
    [["scoped", "scripted"], ["scoped"], ["scripted"]].map((scopes) => site.issue({ scopes })),
  );
  await untilBoth(both?.endpoints ?? [], "scoped", "scoped");
  expect(await codes(name?.endpoints ?? [], "scoped")).toEqual(["model_not_found", "model_not_found"]);
  expect(await codes(target?.endpoints ?? [], "scoped")).toEqual(["model_not_found", "model_not_found"]);
  const ids = await Promise.all([both, name, target].map(async (each) => (await each?.endpoints[0].models())?.ids));
  const scripted = ["scripted", "scripted:embed", "scripted:mlx", "scripted:plain", "scripted:vision"];
  expect(ids).toEqual([["scoped", ...scripted], [], scripted]);
});
