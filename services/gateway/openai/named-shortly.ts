const bytesMax = 1_024;

/** Names as the value of a header, as many as fit and how many more there are: clients refuse headers that are long. */
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
