import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Model } from "#shared/protocol/model.ts";
import { welcome } from "../../../services/cli/commands/welcome.ts";

function model(id: string, completion: boolean): Model {
  return {
    id,
    object: "model",
    created: 1_767_225_600,
    owned_by: "library",
    capabilities: { completion, vision: false, embedding: !completion, tools: false, thinking: false },
    context_window: 4_096,
    size_mb: 1,
    runtime_profile: "auto",
  };
}
const about = {
  baseUrl: "http://127.0.0.1:8484/v1",
  key: "trunkline_x",
  machine: "attic",
  runtime: "ollama",
  command: "npx -y ./t.tgz",
  console: { url: "http://127.0.0.1:8081/console", link: undefined },
};

test("without a model that chats there is nothing to paste, but what to do about it", () => {
  const text = welcome({ ...about, models: [] });
  expect(text).not.toContain("curl");
  expect(text).toContain("ollama pull");
});

test("a public site shows the URL that others use, where it must lead, and how to pair a machine", () => {
  const publicUrl = "https://models.example.org";
  const text = welcome({ ...about, publicUrl, models: [model("llama3.2", true)] });
  expect(text).toContain("Base URL  https://models.example.org/v1\n");
  expect(text).toContain("Here      http://127.0.0.1:8484, to which https://models.example.org must lead\n");
  expect(text).toContain("curl -N https://models.example.org/v1/chat/completions");
  expect(text).toContain("\n  npx -y ./t.tgz machines pair attic\n");
  expect(welcome({ ...about, models: [] })).not.toContain("pair");
  const trial = welcome({ ...about, publicUrl: "http://127.0.0.1:8484", models: [] });
  expect(trial).not.toMatch(/must lead|ollama pull/);
});

test("a model's name is neither a command to the shell nor to the terminal", () => {
  const hostile = "it's `id` $(id)\u001b[2J\u202e";
  const text = welcome({ ...about, runtime: "ollama\u001b]0;x", models: [model(hostile, true)] });
  // oxlint-disable-next-line no-control-regex
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  const [, name = ""] = /chat (.*) 'Hello!'$/m.exec(text) ?? [];
  expect(execFileSync("sh", ["-c", `printf %s ${name}`], { encoding: "utf8" })).toContain("it's `id` $(id)");
  const body = /-d ('.*')$/m.exec(text)?.[1] ?? "";
  const printed = execFileSync("sh", ["-c", `printf %s ${body}`], { encoding: "utf8" });
  expect(JSON.parse(printed)).toMatchObject({ model: expect.stringContaining("it's `id` $(id)") });
});

test("on Windows the line to paste is one of PowerShell, in which no name of a model ends the quotes", () => {
  const hostile = "it's \u2019; Remove-Item \u2018x";
  const text = welcome({
    ...about,
    keyFile: String.raw`C:\Ada's\key`,
    models: [model(hostile, true)],
    platform: "win32",
  });
  const [line = ""] = text.split("\n").filter((each) => each.includes("Invoke-RestMethod"));
  expect(line).toContain(String.raw`Bearer $(Get-Content 'C:\Ada''s\key')`);
  const body = /-Body '(.*)'\)\.choices/.exec(line)?.[1] ?? "";
  expect(body).not.toMatch(/(?<!['\u2018\u2019])(?:['\u2018\u2019]{2})*['\u2018\u2019](?!['\u2018\u2019])/);
  const unquoted = body.replaceAll(/(['\u2018\u2019])\1/g, "$1");
  expect(JSON.parse(unquoted)).toMatchObject({ model: hostile });
});
