import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Endpoint } from "../harness/endpoint.ts";
import { writeTinyGguf } from "../harness/tiny-gguf.ts";
import { issueKey } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { engine, noEngine } from "./tiny-runtime.ts";

const names = ["one", "two", "three"];
const engineDir = "dir" in engine && engine.dir !== undefined ? { TRUNKLINE_ENGINE_DIR: engine.dir } : {};

/** A model of these tests takes 3.6 MB. */
const memoryMb = 5;

describe.skipIf(noEngine)("three models in a memory that holds one", () => {
  test(
    "answer 200 requests of four clients, and are loaded far less often than they are asked",
    { timeout: 60_000 },
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "trunkline-gguf-"));
      onTestFinished(() => rm(folder, { recursive: true, force: true }));
      const written = names.map((name) =>
        writeTinyGguf(folder, { name, scripts: { "<|assistant|>": ["I", " am ", `${name}.`] } }),
      );
      const files = (await Promise.all(written)).flatMap((file) => ["--gguf", file]);
      const up = await TrunklineProcess.start({
        args: ["up", "--json", ...files],
        settings: {
          TRUNKLINE_PORT: "0",
          TRUNKLINE_OPERATIONS_PORT: "0",
          TRUNKLINE_LOG_LEVEL: "info",
          TRUNKLINE_MANAGE: "place",
          TRUNKLINE_MODEL_MEMORY_MB: String(memoryMb),
          ...engineDir,
        },
      });
      onTestFinished(() => up[Symbol.asyncDispose]());
      const [line] = await up.printed(/^.*\n/);
      const ready: { base_url: string } = JSON.parse(line);
      // These loads take milliseconds, and a key may cause only so many a minute.
      const { key } = await issueKey({ TRUNKLINE_STATE_DIR: up.stateDir }, "--loads", "1000");
      const endpoint = new Endpoint({ baseUrl: ready.base_url, key });

      const answers: string[] = [];
      const expected: string[] = [];
      const client = async (place: number): Promise<void> => {
        for (let turn = 0; turn < 50; turn += 1) {
          const model = names[(place + Math.floor(turn / 5)) % names.length] ?? "";
          expected.push(`I am ${model}.`);
          answers.push(await endpoint.answer({ model, says: "Who are you?", temperature: 0 }));
        }
      };
      await Promise.all([0, 1, 2, 3].map(client));
      expect(answers.toSorted()).toEqual(expected.toSorted());
      const loads = (await up.logLines()).filter(({ msg }) => msg === "a model was loaded");
      expect(loads.length).toBeGreaterThanOrEqual(3);
      expect(loads.length).toBeLessThan(100);
    },
  );
});
