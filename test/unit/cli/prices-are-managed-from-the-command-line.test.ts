import { expect, test } from "vitest";
import { SqliteLimitsBook } from "../../../services/gateway/limits/open-limits.ts";
import { lookAtPrices } from "../../../services/cli/doctor/price-check.ts";
import { rowOf, settlementOf } from "../../contract/limits-book.contract.ts";
import { commandLine } from "./command-line.ts";

/** A command line on a store with a key. */
async function siteOnCommandLine() {
  const line = await commandLine();
  await line.issue();
  return line;
}

test("trunkline prices set, list, show and remove say what they did", async () => {
  const { prices } = await siteOnCommandLine();
  const said: string[] = [];
  for (const args of [
    ["set", "qwen*", "--input", "0.20", "--cached", "0.02", "--output", "0.6"],
    ["set", "qwen*", "--input", "0.2", "--cached", "0.020", "--output", "0.60"],
    ["set", "gpt-5", "--external", "--request", "0.000001"],
    ["list"],
    ["show", "gpt-5", "--external"],
    ["remove", "gpt-5", "--external"],
  ])
    said.push((await prices(...args)).out);
  expect(said.join("")).toBe(
    [
      "qwen* costs input 0.20, cached 0.02, output 0.60 (EUR)",
      "qwen* cost that before: input 0.20, cached 0.02, output 0.60 (EUR)",
      "gpt-5 external costs request 0.000001 (EUR)",
      "model           input  cached  output  second  image   request  changed",
      "gpt-5 external      -       -       -       -      -  0.000001  2026-01-01 00:00:00Z",
      "qwen*            0.20    0.02    0.60       -      -         -  2026-01-01 00:00:00Z",
      "model    gpt-5 external",
      "request  0.000001",
      "changed  2026-01-01 00:00:00Z",
      "gpt-5 external has no price of its own any more",
      "",
    ].join("\n"),
  );
  expect(JSON.parse((await prices("list", "--json")).out)).toMatchObject({
    prices: [{ price: "qwen*", input: "0.20" }],
    currency: "EUR",
    without: [],
  });
});

test.each([
  [["m", "--input", "-1"], "at most 6 decimals"],
  [["m", "--input", "1e308"], "at most 6 decimals"],
  [["m", "--input", "9".repeat(309)], "at most 6 decimals"],
  [["m", "--input", "1000001"], "must be at most 1000000"],
  [["two words", "--input", "1"], "without spaces"],
  [["m"], "at least one of input, cached"],
])("trunkline prices set %j is refused with what is wrong", async (args, words) => {
  const { prices } = await siteOnCommandLine();
  const failed = await prices("set", ...args).catch((error: unknown) => error);
  expect(`${String(failed)} ${JSON.stringify(failed)}`).toContain(words);
});

test("trunkline prices show and remove of an unknown price fail with the remedy", async () => {
  const { prices } = await siteOnCommandLine();
  for (const command of ["show", "remove"])
    await expect(prices(command, "m")).rejects.toMatchObject({ message: expect.stringContaining("prices list") });
});

test("the models that were asked for and have no price where they ran are named by the list and by doctor, once there is a price", async () => {
  const { prices, inStore, clock } = await siteOnCommandLine();
  const look = () => inStore((store) => lookAtPrices(store, clock));
  expect(await look()).toMatchObject({ outcome: "skipped" });
  const usage = [
    rowOf({ day: "2025-12-31", model: "gpt-5" }),
    rowOf({ day: "2025-12-31", model: "llama3.2", kind: "external" }),
    rowOf({ day: "2025-12-31", model: null }),
    rowOf({ day: "2025-11-01", model: "long-ago" }),
  ];
  await inStore(async ({ state }) => {
    if (state.kind !== "sqlite") throw new Error("a command line has its store in a folder");
    const settlement = settlementOf({ gateway: "a", usage });
    await new SqliteLimitsBook(state.database, { clock }).settle(settlement);
  });
  await prices("set", "gpt-*", "--external", "--input", "1");
  expect((await prices("list")).out).toContain("without a price, so free: gpt-5, llama3.2\n");
  expect(await look()).toMatchObject({ outcome: "warning", finding: expect.stringContaining("gpt-5, llama3.2.") });
  await prices("set", "*", "--input", "0");
  expect((await prices("list")).out).not.toContain("without a price");
  expect(await look()).toMatchObject({ outcome: "ok" });
});
