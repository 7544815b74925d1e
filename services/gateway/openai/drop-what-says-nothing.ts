/**
 * A null counts as a field that is not there: clients name every field that they know, and send an answer back as they
 * got it. `kept` is a field of which null says something. What should hold fields and is none that could is left to be
 * refused: a text of many megabytes has as many characters, each of which would be looked at.
 */
export function dropNulls(holder: unknown, kept?: string): void {
  if (typeof holder !== "object" || holder === null || Array.isArray(holder)) return;
  for (const [field, value] of Object.entries(holder)) {
    if (value === null && field !== kept) Reflect.deleteProperty(holder, field);
  }
}

/** A list that is empty asks for nothing; frameworks send one for what was never given. */
export function dropEmptyLists(holder: Record<string, unknown>, fields: readonly string[]): void {
  for (const field of fields) {
    if (isEmptyList(holder[field])) Reflect.deleteProperty(holder, field);
  }
}

export function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** The objects among the values of a list, if it is one. */
export function objectsIn(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter((each) => typeof each === "object" && each !== null) : [];
}
