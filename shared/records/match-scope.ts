/**
 * Returns true if one of the scopes matches the model (`scope` in key-record.ts). Of a scope with a space, both parts must match.
 * The console shows it as it is typed.
 */
export function allows(granted: readonly string[], modelId: string): boolean {
  return granted.some((pattern) =>
    pattern.includes(" ") ? pattern.split(" ").every((part) => matches(part, modelId)) : matches(pattern, modelId),
  );
}

/** Returns the scopes that match what both lists match. */
export function commonScopes(one: readonly string[], other: readonly string[]): readonly string[] {
  if (one.includes("*")) return other;
  if (other.includes("*")) return one;
  const pairs = one.flatMap((first) => other.map((second) => [first, second] as const));
  return pairs.flatMap(([first, second]) => {
    if (first.includes("*") || second.includes("*")) return [`${first} ${second}`];
    return names(second, first) ? [first] : names(first, second) ? [second] : [];
  });
}

function matches(pattern: string, modelId: string): boolean {
  return pattern.includes("*") ? globMatches(pattern, modelId) : names(pattern, modelId);
}

function names(pattern: string, modelId: string): boolean {
  if (modelId === pattern) return true;
  const hasVariant = pattern.includes(":", pattern.lastIndexOf("/") + 1);
  return !hasVariant && modelId.startsWith(`${pattern}:`);
}

/**
 * Matches each piece between two stars at its leftmost position. Backtracking is never needed: a later position would
 * only leave less room for the pieces after it. A pattern that is made to be slow is therefore not slow.
 */
function globMatches(glob: string, text: string): boolean {
  const [first = "", ...rest] = glob.split("*");
  const last = rest.pop() ?? "";
  const end = text.length - last.length;
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let position = first.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, position);
    if (found === -1 || found + piece.length > end) return false;
    position = found + piece.length;
  }
  return true;
}
