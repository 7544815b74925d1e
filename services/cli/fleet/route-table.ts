import type { ShownRouteMachine } from "#shared/fleet/shown-route.ts";
import { alignedTable } from "../text/aligned-table.ts";
import { cutText } from "../text/cut-text.ts";

const headings = ["rank", "machine", "free", "queued", "window", "first token", "tokens/s", "why"] as const;
const right = ["rank", "free", "queued", "window", "first token", "tokens/s"] as const;
const grouped = new Intl.NumberFormat("en-US");

/** Formats the machines in the order in which they get the job's offer, then those that get none. */
export function routeTable(
  machines: readonly ShownRouteMachine[],
  { widthMax = Infinity }: { readonly widthMax?: number | undefined } = {},
): string {
  return alignedTable(headings, machines.map(cellsOf), { right })
    .split("\n")
    .map((line) => cutText(line, widthMax))
    .join("\n");
}

function cellsOf(machine: ShownRouteMachine): readonly string[] {
  const { context_window: window, first_token_ms: firstTokenMs, tokens_per_second: tokensPerSecond } = machine;
  return [
    machine.rank === null ? "-" : String(machine.rank),
    machine.machine,
    `${machine.free_slots}/${machine.slots}`,
    String(machine.queued),
    window === null ? "-" : grouped.format(window),
    firstTokenMs === null ? "-" : `${grouped.format(firstTokenMs)} ms`,
    tokensPerSecond === null ? "-" : tokensPerSecond.toFixed(1),
    machine.why ?? "-",
  ];
}
