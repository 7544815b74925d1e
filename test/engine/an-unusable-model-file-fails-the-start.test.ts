import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { llamaRuntime } from "../../services/agent/runtimes/llama/llama.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { writeTinyGguf } from "../harness/tiny-gguf.ts";
import { noEngine, quietly } from "./tiny-runtime.ts";

const folder = folderOfTests();
beforeAll(async () => {});

test("an engine that is not installed is asked for with the command that installs it", async () => {
  await expect(llamaRuntime({ ...quietly, engineDir: folder, files: ["x.gguf"] })).rejects.toMatchObject({
    name: "StartFailure",
    exitCode: exitCodes.unavailable,
    message: expect.stringMatching(/^[^\n]*npm install --no-save node-llama-cpp@3\.22\.1$/),
  });
});

describe.skipIf(noEngine)("a file that cannot be served", () => {
  const refused = (file: string) => expect(llamaRuntime({ ...quietly, files: [join(folder, file)] })).rejects;
  const inOneLine = (text: string) => ({
    name: "StartFailure",
    exitCode: exitCodes.config,
    message: expect.stringMatching(new RegExp(`^[^\\n]*${text}[^\\n]*$`)),
  });

  beforeAll(async () => {
    const whole = await readFile(await writeTinyGguf(folder, { name: "whole", scripts: { "<|assistant|>": ["a"] } }));
    await writeFile(join(folder, "cut-in-weights.gguf"), whole.subarray(0, whole.length / 2));
    await writeFile(join(folder, "cut-in-head.gguf"), whole.subarray(0, 3_000));
    await writeFile(join(folder, "no-model.gguf"), "this is not a model");
    await writeFile(join(folder, "part-00001-of-00002.gguf"), whole);
    await writeTinyGguf(folder, { name: "bad-template", template: "{% if %}", scripts: { "<|assistant|>": ["a"] } });
  });

  test("a file that cannot be served is not there", () =>
    refused("absent.gguf").toMatchObject(inOneLine("no GGUF file at .*absent.gguf")));
  test("a file that cannot be served is no GGUF file", () =>
    refused("no-model.gguf").toMatchObject(inOneLine("not a GGUF file: .*no-model")));
  test("a file that cannot be served ends in its head", () =>
    refused("cut-in-head.gguf").toMatchObject(inOneLine("cut-in-head")));
  test("a file that cannot be served ends in its weights, and is told so after another file failed in its head", async () => {
    await refused("cut-in-head.gguf").toMatchObject(inOneLine("cut-in-head"));
    await refused("cut-in-weights.gguf").toMatchObject(inOneLine("corrupted or incomplete"));
  });
  test("a file that cannot be served lacks a part", () =>
    refused("part-00001-of-00002.gguf").toMatchObject(inOneLine("part-00002-of-00002.gguf")));
  test("a file that cannot be served has a template that makes no sense", () =>
    refused("bad-template.gguf").toMatchObject(inOneLine("chat template in .*bad-template")));
});
