import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shownPlan, type ShownPlan } from "#shared/fleet/shown-plan.ts";
import { z } from "zod";
import { FakeOllama, type FakeOllamaModel } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

const mb = 1_000_000;
const model = (name: string): FakeOllamaModel => ({ name, sizeBytes: 100 * mb, memoryBytes: 120 * mb });
const planned = z.object({ plan: shownPlan.shape.data, keeps: shownPlan.shape.keeps });

describe.skipIf(lentOnly("nats", "redis"))("three machines that let models be placed, and two gateways", () => {
  const parts = new AsyncDisposableStack();
  const ollamas = new Map<string, FakeOllama>();
  let fleet: Fleet;
  let admin: string;

  beforeAll(async () => {
    for (const name of ["attic", "cellar", "desk"]) {
      const models = name === "desk" ? [model("other:latest")] : [model("llama3:8b"), model("qwen3:8b")];
      ollamas.set(name, parts.use(await FakeOllama.start({ models })));
    }
    const machines = Object.fromEntries(
      [...ollamas].map(([name, { url }]) => {
        const runtime = { TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: url };
        return [name, { env: { ...runtime, TRUNKLINE_MANAGE: "place,pull" } }];
      }),
    );
    fleet = parts.use(await startFleet({ gateways: 2, machines }));
    admin = (await fleet.admin()).key;
  });
  afterAll(() => parts.disposeAsync());

  const at = (place: number): Settings => ({
    ...fleet.keyStore,
    TRUNKLINE_OPERATIONS_URL: fleet.gateways[place]?.operationsUrl ?? "",
    TRUNKLINE_ADMIN_KEY: admin,
  });
  const models = (args: readonly string[], place = 0) => trunklineHere(["models", ...args], at(place));
  const plan = async (place = 0): Promise<ShownPlan["data"]> =>
    planned.parse(JSON.parse((await models(["plan", "--json"], place)).out)).plan;
  const holders = (name: string): string[] =>
    [...ollamas].flatMap(([machine, { models: all }]) =>
      all.some((each) => each.name === name && each.loadedTokens !== undefined) ? [machine] : [],
    );
  const untilHeldBy = (name: string, machines: readonly string[]): Promise<unknown> =>
    until(() => holders(name).join(" ") === machines.join(" "), {
      what: `${name} to be in the memory of ${machines.join(" and ")}`,
      timeoutMs: 15_000,
    });

  test("a model that is kept on two machines is loaded on both, and the plan and the list show it", async () => {
    expect(await models(["keep", "llama3:8b", "--on", "2"])).toMatchObject({
      exitCode: 0,
      out: expect.stringContaining("llama3:8b is kept: 2 copies"),
    });
    await untilHeldBy("llama3:8b", ["attic", "cellar"]);
    for (const place of [0, 1]) {
      await until(async () => (await plan(place)).every(({ state }) => state === "loaded"), {
        what: "the plan to be met",
      });
    }
    expect((await models([])).out).toMatch(/^llama3:8b +attic .* yes, kept +\S.*$/m);
    for (const machine of ["attic", "cellar"])
      expect(ollamas.get(machine)?.requestsTo("/api/generate").at(-1)?.body).toMatchObject({ keep_alive: -1 });
  });

  test("a machine that is lost is replaced by another one, which pulls the model first", async () => {
    await fleet.agent("attic").kill();
    await untilHeldBy("llama3:8b", ["attic", "cellar", "desk"]);
    expect(ollamas.get("desk")?.requestsTo("/api/pull")).toHaveLength(1);
    await fleet.startAgent("attic");
    await until(async () => /^llama3:8b +attic /m.test((await models([])).out), { what: "attic to be back" });
    await until(async () => (await plan()).every(({ machine }) => machine !== "attic"), {
      what: "the copies to stay where they are",
    });
  });

  test("whichever gateway is killed, the other one carries a wish out", async () => {
    for (const place of [0, 1]) {
      const other = 1 - place;
      await fleet.gateways[place]?.kill();
      const name = place === 0 ? "qwen3:8b" : "other";
      const machine = place === 0 ? "cellar" : "desk";
      expect((await models(["pin", name, "--machine", machine], other)).exitCode).toBe(0);
      await untilHeldBy(place === 0 ? name : "other:latest", [machine]);
      await fleet.restartGateway(place);
    }
  });

  test("a wish that no machine can meet is told with the reasons, and so is the one that ends", async () => {
    await models(["keep", "qwen3:8b", "--on", "3"]);
    await models(["keep", "llama3:8b", "--none"]);
    const steps = await plan();
    expect(steps.filter((step) => step.model === "qwen3:8b")).toHaveLength(3);
    expect(steps.some((step) => step.model === "llama3:8b")).toBe(false);
    expect(await models(["keep", "llama3:8b", "--none"])).toMatchObject({
      exitCode: 1,
      err: expect.stringContaining("not kept"),
    });
    expect((await models(["keep", "llama3:8b"])).exitCode).toBe(64);
  });
});
