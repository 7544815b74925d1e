/**
 * Deletes null fields, so that a null counts as a missing field. Clients write every field that they know, and send an
 * answer back unchanged. In the field `kept`, null has a meaning and stays. Non-objects are left to the validator:
 * iterating a string of many megabytes here would visit every character.
 */
export function dropNulls(holder: unknown, kept?: string): void {
  if (typeof holder !== "object" || holder === null || Array.isArray(holder)) return;
  for (const [field, value] of Object.entries(holder)) {
    if (value === null && field !== kept) Reflect.deleteProperty(holder, field);
  }
}

/** Deletes the named fields that are empty lists. Frameworks send an empty list for a parameter that was never set. */
export function dropEmptyLists(holder: Record<string, unknown>, fields: readonly string[]): void {
  for (const field of fields) {
    if (isEmptyList(holder[field])) Reflect.deleteProperty(holder, field);
  }
}

export function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Returns the objects in a list. Returns an empty list when `list` is not a list. */
export function objectsIn(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter((each) => typeof each === "object" && each !== null) : [];
}
