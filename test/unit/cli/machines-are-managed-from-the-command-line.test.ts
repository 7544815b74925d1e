import { describe, expect, test } from "vitest";
import { commandLine } from "./command-line.ts";

const at = "2026-01-01T00:00:00.000Z";

describe("trunkline machines", () => {
  test("set, list and remove say what they did, in words and in JSON", async () => {
    const { machines, issue } = await commandLine();
    await issue();
    expect((await machines("set", "attic", "--models", "llama*, qwen2.5")).out).toBe(
      "attic may offer llama*, qwen2.5\n",
    );
    expect((await machines("set", "attic", "--models", "llama*,qwen2.5")).out).toBe(
      "attic might before, and may offer llama*, qwen2.5\n",
    );
    expect(JSON.parse((await machines("set", "the-cellar", "--models", "*", "--json")).out)).toEqual({
      machine: "the-cellar",
      models: ["*"],
      created_at: at,
      changed_at: at,
      outcome: "changed",
    });
    expect((await machines("list")).out).toBe(
      [
        "machine     models           changed",
        "attic       llama*, qwen2.5  2026-01-01 00:00:00Z",
        "the-cellar  *                2026-01-01 00:00:00Z",
        "",
      ].join("\n"),
    );
    expect(JSON.parse((await machines("list", "--json")).out)).toMatchObject([{ machine: "attic" }, { models: ["*"] }]);
    expect((await machines("remove", "the-cellar")).out).toBe(
      "the-cellar has no record any more, and may offer every model\n",
    );
    expect(JSON.parse((await machines("remove", "attic", "--json")).out)).toEqual({
      machine: "attic",
      outcome: "removed",
    });
    expect(await machines("list")).toMatchObject({ out: "", err: expect.stringContaining("No machine has a record") });
  });

  test.each([
    [["set", "attic"], "required option '--models <patterns>'"],
    [["set", "attic", "--models", ""], "It must not be empty"],
    [["set", "attic", "--models", "two words"], "without spaces"],
    [["set", "attic", "--models", Array.from({ length: 65 }, () => "m").join(",")], "at most 64 patterns"],
    [["set", "The Attic", "--models", "*"], "small letters, digits or hyphens"],
    [["remove"], "missing required argument 'name'"],
  ])("%j is told as wrong usage, with what is wrong", async (args, words) => {
    const { machines, issue } = await commandLine();
    await issue();
    const failed = await machines(...args).catch((error: unknown) => error);
    expect(failed).toMatchObject({ said: { err: expect.stringContaining(words) } });
  });

  test("remove of a machine without a record, and set in a store without keys, fail with the remedy", async () => {
    const { machines, issue } = await commandLine();
    await expect(machines("set", "attic", "--models", "*")).rejects.toThrow("issue a key to begin anew");
    await issue();
    await expect(machines("remove", "attic")).rejects.toThrow("`trunkline machines list` shows all");
  });

  test("a change of a machine is in the log of the keys", async () => {
    const { machines, keys, issue } = await commandLine();
    await issue();
    await machines("set", "attic", "--models", "llama*");
    await machines("remove", "attic");
    const { out } = await keys("log");
    expect(out).toMatch(/machine_set +machine +attic +models llama\*\n/);
    expect(out).toMatch(/machine_removed +machine +attic +models llama\* → \*\n/);
  });
});
