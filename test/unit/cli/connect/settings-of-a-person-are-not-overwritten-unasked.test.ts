import { expect, test } from "vitest";
import type { Client, SiteFacts } from "../../../../services/cli/connect/client.ts";
import { planConnection, showDiff } from "../../../../services/cli/connect/plan-connection.ts";
import { modelOf } from "./model-of.ts";

const facts: SiteFacts = {
  origin: "https://models.example.org",
  key: "<key>",
  model: modelOf("a"),
  models: [modelOf("a")],
  places: { home: "/home/alice", platform: "linux", environment: {} },
};

const client: Client = {
  name: "editor",
  title: "The Editor",
  files: ({ key }) => [
    {
      kind: "settings",
      file: "/settings.json",
      settings: [
        { path: ["env", "URL"], value: "https://models.example.org" },
        { path: ["models"], element: { name: "Trunkline" }, value: { name: "Trunkline", size: 2 } },
        { path: ["default"], value: "a", givesWay: true },
      ],
    },
    { kind: "whole", file: "/own.toml", text: `key = "${key}"\n` },
  ],
  next: () => [],
};

const planFor = (texts: Readonly<Record<string, string>>) => planConnection(client, facts, (file) => texts[file]);

test("a plan for missing files overwrites nothing, and knows which file holds the key", () => {
  expect(planFor({})).toEqual([
    {
      file: "/settings.json",
      before: undefined,
      after: expect.stringContaining('"URL": "https://models.example.org"'),
      holdsKey: false,
      overwrites: [],
    },
    { file: "/own.toml", before: undefined, after: 'key = "<key>"\n', holdsKey: true, overwrites: [] },
  ]);
});

test("a plan names each setting of the person's own that it replaces, and no equal one", () => {
  const own = { env: { URL: "https://elsewhere.example", OTHER: "x" }, models: [{ name: "Mine", size: 1 }] };
  const [settings, whole] = planFor({ "/settings.json": JSON.stringify(own), "/own.toml": "mine" });
  expect(settings?.overwrites).toEqual(["env.URL"]);
  expect(JSON.parse(settings?.after ?? "")).toEqual({
    env: { URL: "https://models.example.org", OTHER: "x" },
    models: [
      { name: "Mine", size: 1 },
      { name: "Trunkline", size: 2 },
    ],
    default: "a",
  });
  expect(whole?.overwrites).toEqual(["the whole file"]);
});

test("a default of the person's own stays", () => {
  const [settings] = planFor({ "/settings.json": '{"default": "mine"}' });
  expect(JSON.parse(settings?.after ?? "")).toMatchObject({ default: "mine" });
  expect(settings?.overwrites).toEqual([]);
});

test("a file that cannot be edited is refused by its name", () => {
  expect(() => planFor({ "/settings.json": "{" })).toThrow(
    /^\/settings\.json is no JSON \(.* in line 1\): mend it first\.$/,
  );
});

test("a difference shows two lines around each change, and marks where lines are left out", () => {
  const before = "a\nb\nc\nd\ne\nf\ng\nh\n";
  expect(showDiff(before, before)).toBe("");
  expect(showDiff(before, before.replace("a", "A").concat("i\n"))).toBe("- a\n+ A\n  b\n  c\n  …\n  g\n  h\n+ i\n");
  expect(showDiff("", "a\n")).toBe("+ a\n");
});
