import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { JudgedTarget } from "./judge-targets.ts";

/** By a target's id, what was measured on a run that all others are compared with. */
export type CommittedBounds = Readonly<Record<string, number>>;

export interface CheckedBound {
  readonly judged: JudgedTarget;
  readonly committed: number;
  readonly verdict: "holds" | "doubled" | "broken" | "not measured";
}

export interface BoundsCheck {
  readonly rows: readonly CheckedBound[];
  readonly passes: boolean;
}

/** A shared machine makes ratios noisy, but none twice as large. */
const worseMax = 2;

/**
 * Holds judged figures against committed ones. It fails on a doubling, on wrong answers of Trunkline, and when nothing at
 * all was measured, which would pass for ever. A figure that could not be measured, as a peer is not there, is told.
 */
export function checkBounds(judged: readonly JudgedTarget[], committed: CommittedBounds): BoundsCheck {
  const unknown = Object.keys(committed).filter((id) => !judged.some(({ target }) => target.id === id));
  if (unknown.length > 0) throw new Error(`committed bounds name targets that do not exist: ${unknown.join(", ")}`);
  const rows = judged.flatMap((one) => {
    const bound = committed[one.target.id];
    return bound === undefined ? [] : [{ judged: one, committed: bound, verdict: verdictOf(one, bound) }];
  });
  const isMeasured = rows.some(({ verdict }) => verdict !== "not measured");
  const isWorse = rows.some(({ verdict }) => verdict === "doubled" || verdict === "broken");
  return { rows, passes: isMeasured && !isWorse };
}

function verdictOf({ target, spread, isBroken }: JudgedTarget, committed: number): CheckedBound["verdict"] {
  if (isBroken) return "broken";
  if (spread === undefined) return "not measured";
  const { bound } = target;
  // Nothing is twice nothing: what was zero or less is held against the target itself.
  if ("atMost" in bound)
    return spread.median > (committed > 0 ? committed * worseMax : bound.atMost) ? "doubled" : "holds";
  return spread.median < committed / worseMax ? "doubled" : "holds";
}

export const committedBoundsFile = join(import.meta.dirname, "..", "committed-bounds.json");

/** Reads the committed figures; says which entry is wrong. */
export async function readCommittedBounds(file: string = committedBoundsFile): Promise<CommittedBounds> {
  const read: unknown = JSON.parse(await readFile(file, "utf8"));
  if (typeof read !== "object" || read === null || Array.isArray(read)) throw new Error(`${file} is no JSON object`);
  const bounds: Record<string, number> = {};
  for (const [id, value] of Object.entries(read)) {
    if (typeof value !== "number") throw new Error(`${file}: ${id} is no number`);
    bounds[id] = value;
  }
  return bounds;
}
