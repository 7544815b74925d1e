/** Faults of the gateway at the fields of a form. Pure. */

/** Returns the name of the field that a parameter such as `scopes[1]` or `budget.tokens` belongs to. */
export function fieldOf(param: string, hasField: (name: string) => boolean): string | undefined {
  for (let name = param; name !== ""; name = holderOf(name)) if (hasField(name)) return name;
  return undefined;
}

function holderOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("."), name.lastIndexOf("[")));
}

/** Returns a message of the gateway as it stands at a field, which names the parameter already. */
export function wordsAtField(message: string): string {
  const words = message.replace(/^(?:Invalid (?:value|type) for )?'[^']*':? /, "");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
