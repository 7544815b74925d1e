const bytesMax = 1_024;

/**
 * Joins names into a header value: as many as fit into `bytesMax`, then the number of the others. Clients refuse long
 * headers.
 */
export function namedShortly(names: readonly string[]): string {
  let value = "";
  for (const [place, name] of names.entries()) {
    const next = place === 0 ? name : `${value},${name}`;
    if (next.length > bytesMax)
      return value === "" ? `${names.length} names` : `${value},+${names.length - place} more`;
    value = next;
  }
  return value;
}
