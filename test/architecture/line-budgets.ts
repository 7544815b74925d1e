import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Source } from "./find-violations.ts";
import { lineBudgets } from "./import-rules.ts";

const rulesPath = join(import.meta.dirname, "import-rules.ts");

/** Returns a line for each folder that is over its budget, or that has none. */
export function findLongFolders(sources: readonly Source[], budgets = lineBudgets): string[] {
  return [...linesOf(sources)].flatMap(([folder, lines]) => {
    const budget = budgets[folder];
    if (budget === undefined) return [`${folder} has ${lines} lines and no line budget. ${remedy}`];
    return lines > budget ? [`${folder} is over its line budget: ${budget}, lines: ${lines}. ${remedy}`] : [];
  });
}

const remedy =
  "Shorten it, or change `lineBudgets` in test/architecture/import-rules.ts; `npm run budgets` sets all to today's lines.";

/** Writes the lines of today, and `slackPercent` more, into `lineBudgets`, rounded up to tens. */
export function setBudgets(sources: readonly Source[], slackPercent: number): void {
  const entries = [...linesOf(sources)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const rows = entries.map(([folder, lines]) => {
    const budget = Math.ceil((lines * (1 + slackPercent / 100)) / 10) * 10;
    return `  "${folder}": ${String(budget).replace(/(?=\d{3}$)(?<=\d)/, "_")},\n`;
  });
  const text = readFileSync(rulesPath, "utf8");
  writeFileSync(rulesPath, text.replace(/(lineBudgets[^{]*)\{[^}]*\}/, `$1{\n${rows.join("")}}`));
}

/** Lines of TypeScript by room: `services/gateway/fleet`, `shared/broker`; a service's own files count as its folder. */
export function linesOf(sources: readonly Source[]): ReadonlyMap<string, number> {
  const lines = new Map<string, number>();
  for (const { path, text } of sources) {
    const [top, ...below] = path.split("/").slice(0, -1);
    if (top !== "services" && top !== "shared") continue;
    const room = [top, ...below.slice(0, top === "services" ? 2 : 1)].join("/");
    lines.set(room, (lines.get(room) ?? 0) + text.split("\n").length - 1);
  }
  return lines;
}
