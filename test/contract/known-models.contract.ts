import { describe, expect, test } from "vitest";
import type { openKnownModels } from "#shared/store/known-models.ts";

type KnownModels = ReturnType<typeof openKnownModels>;

const dayMs = 86_400_000;
const nowMs = Date.UTC(2026, 0, 1);

/** Each opening is another gateway's; both look at the same models. */
const machine = "attic";

export function knownModelsContract(
  adapter: string,
  open: (options: { readonly sightingsMax?: number }) => Promise<readonly [KnownModels, KnownModels]>,
): void {
  describe(`known models in ${adapter}`, () => {
    test("what one gateway saw, all know: by its exact id", async () => {
      const [here, there] = await open({});
      await here.remember({ machine, modelIds: ["llama3:8b", "hf.co/org/qwen:q4"], seenAtMs: nowMs });
      await here.remember({ machine, modelIds: [], seenAtMs: nowMs });
      expect(await there.knows("llama3:8b", { nowMs })).toBe("known");
      expect(await there.knows("hf.co/org/qwen:q4", { nowMs })).toBe("known");
      expect(await there.knows("llama3", { nowMs })).toBe("unknown");
      expect(await there.knows("LLAMA3:8b", { nowMs })).toBe("unknown");
    });

    test("a model is known for 30 days from when it was last seen", async () => {
      const [models] = await open({});
      await models.remember({ machine, modelIds: ["old", "kept"], seenAtMs: nowMs });
      await models.remember({ machine, modelIds: ["kept"], seenAtMs: nowMs + 10 * dayMs });
      expect(await models.knows("old", { nowMs: nowMs + 30 * dayMs - 1 })).toBe("known");
      expect(await models.knows("old", { nowMs: nowMs + 30 * dayMs })).toBe("unknown");
      expect(await models.knows("kept", { nowMs: nowMs + 39 * dayMs })).toBe("known");
    });

    test("a sighting that arrives late does not make a model older", async () => {
      const [here, there] = await open({});
      await here.remember({ machine, modelIds: ["llama3"], seenAtMs: nowMs });
      await there.remember({ machine, modelIds: ["llama3"], seenAtMs: nowMs - 29 * dayMs });
      expect(await here.knows("llama3", { nowMs: nowMs + 29 * dayMs })).toBe("known");
    });

    test("above the limit the models seen the longest ago are forgotten", async () => {
      const [models] = await open({ sightingsMax: 4 });
      await models.remember({ machine, modelIds: ["first"], seenAtMs: nowMs });
      await models.remember({ machine, modelIds: ["second"], seenAtMs: nowMs + 1 });
      await models.remember({ machine, modelIds: ["third"], seenAtMs: nowMs + 2 });
      expect(await models.knows("first", { nowMs })).toBe("unknown");
      expect(await models.knows("second", { nowMs })).toBe("known");
      expect(await models.knows("third", { nowMs })).toBe("known");
    });

    test("a model is known of the machines that offered it, and of no others", async () => {
      const [here, there] = await open({});
      await here.remember({ machine: "attic", modelIds: ["llama3"], seenAtMs: nowMs });
      await there.remember({ machine: "cellar", modelIds: ["qwen"], seenAtMs: nowMs });
      expect(await there.knows("llama3", { nowMs, machines: ["attic"] })).toBe("known");
      expect(await there.knows("llama3", { nowMs, machines: ["cellar", "shed"] })).toBe("unknown");
      expect(await there.knows("qwen", { nowMs, machines: ["attic", "cellar"] })).toBe("known");
      expect(await there.knows("qwen", { nowMs })).toBe("known");
    });

    test("the list has every model that is known, alone and by its machine, and one external by its machine only", async () => {
      const [here, there] = await open({});
      await here.remember({ machine: "attic", modelIds: ["old"], seenAtMs: nowMs - 30 * dayMs });
      await here.remember({ machine: "attic", modelIds: ["a model"], seenAtMs: nowMs });
      await there.remember({ machine: "cloud", modelIds: ["gpt-5"], seenAtMs: nowMs, external: true });
      const listed = (await here.list(nowMs)).map(({ machine: name, model }) => `${name}: ${model}`).toSorted();
      expect(listed).toEqual([": a model", "attic: a model", "cloud: gpt-5"]);
    });

    test("a name that would mean something to the store is only a name", async () => {
      const [models] = await open({});
      const names = ["'); DROP TABLE known_models; --", "a\r\nFLUSHALL\r\n", "*", "\u0000", "GT"];
      await models.remember({ machine, modelIds: names, seenAtMs: nowMs });
      for (const name of names) expect(await models.knows(name, { nowMs })).toBe("known");
      expect(await models.knows("anything", { nowMs })).toBe("unknown");
    });
  });
}
