import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedDimensions, scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";

async function embed(input: string[], options: { dimensions?: number; signal?: AbortSignal } = {}) {
  const { signal = new AbortController().signal, ...fields } = options;
  const runtime = scriptedRuntime({ clock: systemClock });
  const run = {
    model: "scripted:embed",
    capabilities: { completion: false, vision: false, embedding: true, tools: false, thinking: false },
    contextWindow: 32_768,
    body: { input, ...fields },
    signal,
    onProgress: () => undefined,
  };
  if (runtime.embed === undefined) throw new Error("the demonstration does not embed");
  return runtime.embed(run);
}

test("the demonstration embeds each text in its place, and counts their words", async () => {
  const { vectors, promptTokens } = await embed(["one two", "three"]);
  expect(vectors).toHaveLength(2);
  expect(promptTokens).toBe(3);
});

test("its vectors are of length one, always the same for a text and never for two", async () => {
  const { vectors } = await embed(["one", "two", "one"]);
  const [one, two, again] = vectors;
  expect(one).toHaveLength(scriptedDimensions);
  expect(again).toEqual(one);
  expect(two).not.toEqual(one);
  for (const vector of vectors) expect(Math.hypot(...vector)).toBeCloseTo(1, 10);
});

test("they have as many dimensions as were asked for", async () => {
  for (const dimensions of [1, 7, 4_096]) {
    const { vectors } = await embed(["one"], { dimensions });
    expect(vectors[0]).toHaveLength(dimensions);
    expect(Math.hypot(...(vectors[0] ?? []))).toBeCloseTo(1, 10);
  }
});

test("nothing is embedded once nobody waits", async () => {
  const reason = new Error("nobody waits");
  await expect(embed(["one"], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});
