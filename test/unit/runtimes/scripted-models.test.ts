import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { offeredBy } from "../../harness/ask-runtime.ts";

const { signal } = new AbortController();

test("the demonstration models run on MLX where the name says so, and nowhere else", async () => {
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
