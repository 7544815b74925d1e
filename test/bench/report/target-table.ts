import { alignedTable } from "../../../services/cli/text/aligned-table.ts";
import type { BoundsCheck, CheckedBound } from "./bounds.ts";
import { figureText, noFigure, spreadText } from "./figure-text.ts";
import type { JudgedTarget } from "./judge-targets.ts";
import { boundText } from "./targets.ts";

type Verdict = JudgedTarget["verdict"] | CheckedBound["verdict"];

const colours: Readonly<Record<Verdict, string>> = {
  met: "\u001b[32m",
  holds: "\u001b[32m",
  missed: "\u001b[31m",
  doubled: "\u001b[31m",
  broken: "\u001b[31m",
  "not measured": "\u001b[33m",
};
const plain = "\u001b[39m";

/** All targets, a line each, for a terminal. */
export function targetTable(
  judged: readonly JudgedTarget[],
  { coloured = false }: { coloured?: boolean } = {},
): string {
  const rows = judged.map((one) => [
    one.verdict,
    one.target.scenario,
    one.target.measure,
    boundText(one.target),
    measuredText(one),
    floorText(one),
    String(one.rounds),
    one.why ?? "",
  ]);
  const headings = ["verdict", "scenario", "measure", "bound", "measured", "B itself", "rounds", "note"];
  return colouredLines(alignedTable(headings, rows, { right: ["B itself", "rounds"] }), judged, coloured);
}

/** What the floor of the design reaches, and whether that is enough. */
export function floorText({ floor }: JudgedTarget): string {
  if (floor === undefined) return noFigure;
  return `${figureText(floor.spread.median)}${floor.isBeyond ? ", missed" : ""}`;
}

/** What was held against committed figures, a line each, and what came of it. */
export function boundsTable(check: BoundsCheck, { coloured = false }: { coloured?: boolean } = {}): string {
  const rows = check.rows.map(({ judged, committed, verdict }) => [
    verdict,
    judged.target.id,
    judged.target.measure,
    figureText(committed),
    measuredText(judged),
    judged.spread === undefined || committed === 0 ? noFigure : figureText(judged.spread.median / committed),
    judged.why ?? "",
  ]);
  const headings = ["verdict", "target", "measure", "committed", "measured", "of committed", "note"];
  return colouredLines(alignedTable(headings, rows, { right: ["committed", "of committed"] }), check.rows, coloured);
}

export function measuredText({ spread, target: { unit } }: JudgedTarget): string {
  return spread === undefined ? noFigure : `${spreadText(spread)}${unit === "" ? "" : ` ${unit}`}`;
}

/** The verdict is each line's first word, so that colour needs no place to be found. */
function colouredLines(table: string, rows: readonly { readonly verdict: Verdict }[], coloured: boolean): string {
  if (!coloured) return table;
  const [heading = "", ...lines] = table.trimEnd().split("\n");
  const shown = lines.map((line, at) => {
    const verdict = rows[at]?.verdict;
    return verdict === undefined ? line : `${colours[verdict]}${verdict}${plain}${line.slice(verdict.length)}`;
  });
  return [heading, ...shown].map((line) => `${line}\n`).join("");
}
