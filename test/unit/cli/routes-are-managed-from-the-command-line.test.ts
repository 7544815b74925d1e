import { expect, test } from "vitest";
import { openKnownModels } from "#shared/store/known-models.ts";
import { commandLine } from "./command-line.ts";

/** A command line on a store with a key. */
async function siteOnCommandLine() {
  const line = await commandLine();
  await line.issue();
  return line;
}

test("trunkline routes set, list, show and remove say what they did", async () => {
  const { routes } = await siteOnCommandLine();
  const said: string[] = [];
  for (const args of [
    ["set", "claude-sonnet-4", "qwen3-coder:30b", "--then", "gpt-oss:20b on attic, loft", "--then", "llama3.2"],
    ["set", "claude-*", "llama3.2", "--then", "gpt-5 on cloud external"],
    ["set", "claude-*", "llama3.2 with fast", "--then", "gpt-5 with far external"],
    ["set", "claude-*", "llama3.2", "--then", "gpt-5 external"],
    ["set", "claude-*", "llama3.2"],
    ["set", "claude-*", "llama3.2"],
    ["list"],
    ["show", "claude-sonnet-4"],
    ["remove", "claude-*"],
  ]) {
    said.push((await routes(...args)).out);
  }
  expect(said.join("")).toBe(
    [
      "claude-sonnet-4 stands for qwen3-coder:30b, then gpt-oss:20b on attic,loft, then llama3.2",
      "claude-* stands for llama3.2, then gpt-5 on cloud external",
      "claude-* stands for llama3.2 with fast, then gpt-5 with far external",
      "claude-* stands for llama3.2, then gpt-5 external",
      "claude-* stands for llama3.2",
      "claude-* stood for that before: llama3.2",
      "name             targets                                                         changed",
      "claude-*         llama3.2                                                        2026-01-01 00:00:00Z",
      "claude-sonnet-4  qwen3-coder:30b, then gpt-oss:20b on attic,loft, then llama3.2  2026-01-01 00:00:00Z",
      "name     claude-sonnet-4",
      "target   qwen3-coder:30b",
      "then     gpt-oss:20b on attic,loft",
      "then     llama3.2",
      "created  2026-01-01 00:00:00Z",
      "changed  2026-01-01 00:00:00Z",
      "claude-* is no route any more",
      "",
    ].join("\n"),
  );
  expect((await routes("list")).out).not.toContain("claude-*");
});

test("trunkline routes set warns of targets that no machine has offered, with the nearest names, and --strict sets nothing", async () => {
  const { routes, inStore, clock } = await siteOnCommandLine();
  await inStore(async ({ state }) => {
    const known = openKnownModels(state);
    await known.remember({ machine: "attic", modelIds: ["qwen3-coder:30b", "qwen3:8b"], seenAtMs: clock.wall() });
    await known.remember({ machine: "loft", modelIds: ["gpt-oss:20b"], seenAtMs: clock.wall() });
  });
  const warned = async (...targets: string[]) =>
    (await routes("set", "gpt-4o", ...targets)).err.replace(/Key store.*\n/, "");
  expect(await warned("qwen3:8b", "--then", "qwen3:8b:latest", "--then", "gpt-oss:20b on loft,attic")).toBe("");
  expect(await warned("qwen3-coder:30", "--then", "qwen3:8b on loft")).toBe(
    `Warning: No machine has offered 'qwen3-coder:30' in the last 30 days. The nearest: qwen3-coder:30b, qwen3:8b, gpt-oss:20b.
Warning: No machine has offered 'qwen3:8b on loft' in the last 30 days. It is on attic.
`,
  );
  expect((await routes("list")).out).toContain("qwen3-coder:30, then qwen3:8b on loft");
  await expect(routes("set", "gpt-4o", "gpt-4", "--strict")).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining("Nothing was set. No machine has offered 'gpt-4'"),
  });
  expect((await routes("list")).out).not.toContain("gpt-4 ");
});

test("each command of trunkline routes has its result in JSON", async () => {
  const { routes } = await siteOnCommandLine();
  const at = "2026-01-01T00:00:00.000Z";
  const targets = [{ model: "qwen3:8b" }, { model: "llama3.2", machines: ["attic"] }];
  const shown = { route: "gpt-4o", targets, created_at: at, changed_at: at };
  const read = async (...args: string[]): Promise<unknown> => JSON.parse((await routes(...args, "--json")).out);
  const set = ["set", "gpt-4o", "qwen3:8b", "--then", "llama3.2 on attic"];
  expect(await read(...set)).toEqual({ ...shown, outcome: "changed" });
  expect(await read(...set)).toEqual({ ...shown, outcome: "unchanged" });
  expect([await read("show", "gpt-4o"), await read("list")]).toEqual([shown, [shown]]);
  expect(await read("remove", "gpt-4o")).toEqual({ route: "gpt-4o", outcome: "removed" });
  expect(await read("list")).toEqual([]);
  expect((await routes("list")).err).toContain("There is no route yet");
});

const forms = "must be a model, 'model on machine,machine', 'model with label' or 'model external'";
test.each([
  [["set", "gpt-4o"], "missing required argument 'target'"],
  [["set", "two words", "llama3.2"], "must be printable and without spaces"],
  [["set", "n".repeat(101), "llama3.2"], "must have at most 100 characters"],
  [["set", "gpt-4o", "llama*"], "must be the id of one model"],
  [["set", "gpt-4o", "llama3.2 near attic"], forms],
  [["set", "gpt-4o", "llama3.2 with Fast"], "small letters, digits or hyphens"],
  [["set", "gpt-4o", "llama3.2 on"], forms],
  [["set", "gpt-4o", "llama3.2 on The Attic"], "small letters, digits or hyphens"],
  [["set", "gpt-4o", "llama3.2", "--then", "qwen3 on ATTIC"], "small letters, digits or hyphens"],
  [["set", "gpt-4o", "m", ...Array.from({ length: 8 }, () => ["--then", "m"]).flat()], "must be at most 8 targets"],
])("trunkline routes %j is told as wrong usage, with what is wrong", async (args, words) => {
  const { routes } = await siteOnCommandLine();
  const failed = await routes(...args).catch((error: unknown) => error);
  expect(failed).toMatchObject({ said: { err: expect.stringContaining(words) } });
});

test.each([["show"], ["remove"]])("trunkline routes %s of an unknown route fails with the remedy", async (command) => {
  const { routes } = await siteOnCommandLine();
  await expect(routes(command, "gpt-4o")).rejects.toMatchObject({
    message: expect.stringContaining("There is no route gpt-4o: `trunkline routes list` shows all."),
    exitCode: 1,
  });
});

test("a change of a route is in the log of the keys", async () => {
  const { routes, keys } = await siteOnCommandLine();
  await routes("set", "gpt-4o", "llama3.2");
  await routes("set", "gpt-4o", "qwen3:8b");
  await routes("remove", "gpt-4o");
  const { out } = await keys("log");
  expect(out).toMatch(/route_set +route +gpt-4o +targets llama3\.2\n/);
  expect(out).toMatch(/route_set +route +gpt-4o +targets llama3\.2 → qwen3:8b\n/);
  expect(out).toMatch(/route_removed +route +gpt-4o/);
});
