import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { readModelFiles } from "../../../services/agent/runtimes/openai/model-files.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";

let hub: string;
let snapshot: string;

beforeEach(() => {
  hub = folderOfTest();
  snapshot = join(hub, "models--org--name", "snapshots", "abc123");
  mkdirSync(snapshot, { recursive: true });
  mkdirSync(join(hub, "models--org--name", "refs"));
  writeFileSync(join(hub, "models--org--name", "refs", "main"), "abc123\n");
  writeFileSync(join(snapshot, "config.json"), JSON.stringify({ max_position_embeddings: 32_768 }));
  writeFileSync(join(snapshot, "model-00001-of-00002.safetensors"), Buffer.alloc(300));
  writeFileSync(join(snapshot, "model-00002-of-00002.safetensors"), Buffer.alloc(200));
});

test("the files of a model are found in a folder that is named", async () => {
  expect((await readModelFiles(snapshot, "/nowhere"))?.sizeBytes).toBe(500);
});

test("the files of a model tell the window of the language model within a larger one", async () => {
  const config = { max_position_embeddings: 7, text_config: { max_position_embeddings: 131_072 } };
  writeFileSync(join(snapshot, "config.json"), JSON.stringify(config));
  const files = await readModelFiles("org/name", hub);
  expect(files?.trainedTokens).toBe(131_072);
});

test("the files of a model hold the template in the tokenizer's, or in a file of its own", async () => {
  writeFileSync(join(snapshot, "tokenizer_config.json"), JSON.stringify({ chat_template: "old" }));
  expect((await readModelFiles("org/name", hub))?.chatTemplate).toBe("old");
  writeFileSync(join(snapshot, "chat_template.jinja"), "new");
  expect((await readModelFiles("org/name", hub))?.chatTemplate).toBe("new");
});

test("the files of a model may be broken, and then tell what is left", async () => {
  writeFileSync(join(snapshot, "config.json"), "{oops");
  const files = await readModelFiles("org/name", hub);
  expect(files?.sizeBytes).toBe(500);
  expect(files?.trainedTokens).toBeUndefined();
});

test.each([["org/other"], ["../models--org--name/snapshots/abc123"], ["a/b/c"], [""]])(
  "the files of a model are nothing for a name that is not in the cache: %s",
  async (name) => {
    expect(await readModelFiles(name, hub)).toBeUndefined();
  },
);
