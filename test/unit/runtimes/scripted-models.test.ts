import { describe, expect, test } from "vitest";
import { catalogue } from "#shared/protocol/model.ts";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { offeredBy } from "../../harness/ask-runtime.ts";

const { signal } = new AbortController();

describe("the demonstration models", () => {
  test("the demonstration models are valid models that differ in what they can do and say that they are a demonstration", async () => {
    const models = catalogue.parse(await offeredBy(scriptedRuntime({ clock: systemClock })));
    const able = models.map(({ id, capabilities }) => [
      id,
      Object.entries(capabilities).flatMap(([name, yes]) => (yes ? [name] : [])),
    ]);
    expect(Object.fromEntries(able)).toEqual({
      scripted: ["completion", "tools", "thinking"],
      "scripted:plain": ["completion"],
      "scripted:vision": ["completion", "vision"],
      "scripted:embed": ["embedding"],
      "scripted:mlx": ["completion"],
    });
    expect(models.every((model) => model.owned_by.includes("demonstration"))).toBe(true);
  });

  test("run on MLX where the name says so, and nowhere else", async () => {
    const models = await offeredBy(scriptedRuntime({ clock: systemClock }));
    const onMlx = models.filter((model) => model.runtime_profile === "apple-mlx" || "apple_mlx" in model);
    expect(onMlx).toMatchObject([{ id: "scripted:mlx", runtime_profile: "apple-mlx", apple_mlx: true }]);
  });

  test("the demonstration models are offered as chosen", async () => {
    const runtime = scriptedRuntime({ clock: systemClock, models: ["scripted:embed", "scripted"] });
    expect((await runtime.catalogue(signal)).map(({ id }) => id)).toEqual(["scripted", "scripted:embed"]);
  });

  test("the demonstration models cannot be chosen by a name that none of them has", () => {
    expect(() => scriptedRuntime({ clock: systemClock, models: ["scripted", "llama"] })).toThrow(
      'There is no demonstration model "llama"; choose from scripted, scripted:plain, scripted:vision',
    );
  });
});
