import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { ModelNotes } from "../../services/agent/models/model-notes.ts";
import { proof } from "../../services/agent/models/seam-prover.ts";
import { RuntimeWatch } from "../../services/agent/models/watch-runtimes.ts";
import type { TinyGguf } from "../harness/tiny-gguf.ts";
import { until } from "../harness/until.ts";
import { thinkingTemplate } from "./templates.ts";
import { noEngine, TinyRuntime } from "./tiny-runtime.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "trunkline-proofs-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const log = createLog({ level: "silent", name: "test" });

/** Tokens that end in mid-word and in an empty line. */
const words = Array.from({ length: 24 }, (_, at) => [` be${at}`, `gun${at}`, ".\n\n"[at % 3] + `And${at}`]).flat();

/** Returns the model as an idle agent offers it once it has proved what it goes on with. */
async function offered(tiny: TinyGguf): Promise<OfferedModel> {
  await using engine = await TinyRuntime.start(tiny);
  const sources = [{ location: "here", look: async () => engine.runtime }];
  const proofs = new ModelNotes({ file: join(folder, "proofs.json"), note: proof, log });
  const watch = new RuntimeWatch({ sources, firstSeen: () => 0, proofs, timing: timingAt(0.2), clock, log });
  try {
    await watch.start();
    await until(() => watch.offer?.catalogue[0]?.continues !== undefined, { what: "the proof", timeoutMs: 20_000 });
    const [model] = watch.offer?.catalogue ?? [];
    if (model === undefined) throw new Error("the engine offers no model");
    return model;
  } finally {
    await watch.stop();
  }
}

describe.skipIf(noEngine)("the engine inside the agent", () => {
  test("the engine inside the agent goes on with a begun answer, and two files are the same model only if they are equal", async () => {
    const tiny = { name: "tiny", scripts: { "<|assistant|>": words }, contextTokens: 2_048 };
    const model = await offered(tiny);
    expect(model.continues).toEqual(["plain"]);
    expect(model.digest).toMatch(/^llama:[0-9a-f]{32}$/);
    expect((await offered({ ...tiny, scripts: { "<|assistant|>": words.slice(1) } })).digest).not.toBe(model.digest);
    expect((await offered(tiny)).digest).toBe(model.digest);
  });

  test("the engine inside the agent goes on behind a thought without thinking again, also beside tools", async () => {
    const answer = ["<think>", "Well.", "</think>", ...words];
    const scripts = { "<|assistant|>": answer, "<|with-tools|>": answer };
    const model = await offered({ name: "thinker", scripts, template: thinkingTemplate, contextTokens: 2_048 });
    expect(model.capabilities).toMatchObject({ thinking: true, tools: true });
    expect(model.continues).toEqual(["plain", "thought", "tools", "tools and thought"]);
  });

  test("the engine inside the agent is not proved for a model to which the text so far is other tokens than those of its answer", async () => {
    const halves = words.map((_, at) => (at % 2 === 0 ? ` left${at}` : `right${at}`));
    const wholes = halves.flatMap((half, at) => (at % 2 === 0 ? [`${half}${halves[at + 1]}`] : []));
    const model = await offered({ name: "two-ways", scripts: { "<|assistant|>": halves }, words: wholes });
    expect(model.continues).toEqual([]);
  });
});
