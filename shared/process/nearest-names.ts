/** Returns names with their edit distance to `wanted`, the nearest first. */
export function nearestFirst(
  wanted: string,
  names: readonly string[],
): readonly { readonly name: string; readonly distance: number }[] {
  return names
    .map((name) => ({ name, distance: editDistance(wanted, name) }))
    .toSorted((one, other) => one.distance - other.distance);
}

/** Returns the edit distance of two texts: letters inserted, removed or replaced, and neighbours exchanged. */
function editDistance(one: string, other: string): number {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [at, letter] of one.split("").entries()) {
    const next = [at + 1];
    for (let column = 1; column < row.length; column += 1) {
      const [left = 0, above = 0, diagonal = 0] = [next[column - 1], row[column], row[column - 1]];
      const isExchanged = letter === other[column - 2] && one[at - 1] === other[column - 1];
      const exchanged = isExchanged ? (before[column - 2] ?? Infinity) + 1 : Infinity;
      next.push(Math.min(left + 1, above + 1, diagonal + Number(letter !== other[column - 1]), exchanged));
    }
    [before, row] = [row, next];
  }
  return row.at(-1) ?? 0;
}
