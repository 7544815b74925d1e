import { Option, type Command } from "commander";
import { z } from "zod";
import { keyStates, type KeyState } from "#shared/keys/key-record.ts";
import { showKey, type ShownKey } from "#shared/keys/shown-key.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import { commaList, readBy } from "../read-by.ts";
import type { Surroundings } from "../surroundings.ts";
import { alignedTable } from "../text/aligned-table.ts";
import { cutText } from "../text/cut-text.ts";
import { utcTime } from "../text/utc-time.ts";
import { withKeyStore } from "../with-key-store.ts";
import { limitsText } from "./limits-text.ts";

interface Column {
  readonly heading: string;
  readonly cell: (key: ShownKey) => string;
  /**
   * True if the column has a value for the key. A column without a value for any key is left out. Columns without
   * `tells` are always shown.
   */
  readonly tells?: (key: ShownKey) => boolean;
}

const columns: readonly Column[] = [
  { heading: "id", cell: ({ id }) => id },
  { heading: "name", cell: ({ name }) => name },
  { heading: "kind", cell: ({ kind }) => kind, tells: ({ kind }) => kind !== "model" },
  { heading: "scopes", cell: ({ kind, scopes }) => (kind === "model" ? scopes.join(", ") : "-") },
  {
    heading: "machines",
    cell: ({ kind, machines }) => (kind === "model" ? (machines?.join(", ") ?? "any") : "-"),
    tells: ({ machines }) => machines !== null,
  },
  {
    heading: "limits",
    cell: (key) => (key.kind === "model" ? limitsText(key) || "none" : "-"),
    tells: (key) => limitsText(key) !== "",
  },
  { heading: "state", cell: ({ state }) => state },
  { heading: "expires", cell: ({ expires_at: expiresAt }) => utcTime(expiresAt) },
];

const cellWidthMax = 40;

const states: z.ZodType<readonly KeyState[], string> = commaList.pipe(
  z.array(z.enum(keyStates, `must be one or more of ${keyStates.join(", ")}`)),
);

export function addList(keys: Command, surroundings: Surroundings): void {
  const { stdout, stderr } = surroundings;
  keys
    .command("list")
    .description("show all keys, without their secrets")
    .addOption(new Option("--state <states>", `only keys that are ${keyStates.join(", ")}`).argParser(readBy(states)))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
Keys that expired are listed for another 90 days. What is too long for the table is cut, and "trunkline keys show <id>"
shows it whole.

Examples:
  trunkline keys list
  trunkline keys list --state valid,disabled
  trunkline keys list --json`,
    )
    .action(({ json, state }: { readonly state?: readonly KeyState[] } & GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ keys: store, clock }) => {
        const all = (await store.list()).map((record) => showKey(record, clock.wall()));
        const wanted = all.filter((key) => state?.includes(key.state) ?? true);
        if (json) stdout.write(`${JSON.stringify(wanted)}\n`);
        else if (wanted.length > 0) stdout.write(tableOf(wanted));
        else if (all.length > 0) stderr.write(`No key is ${state?.join(" or ")}.\n`);
        else stderr.write("There are no keys yet; `trunkline keys issue --name <name>` makes one.\n");
      }),
    );
}

function tableOf(keys: readonly ShownKey[]): string {
  const telling = columns.filter(({ tells }) => tells === undefined || keys.some(tells));
  return alignedTable(
    telling.map(({ heading }) => heading),
    keys.map((key) => telling.map(({ cell }) => cutText(cell(key), cellWidthMax))),
  );
}
