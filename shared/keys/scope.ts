import { z } from "zod";
import { modelIdCharactersMax } from "../model/model.ts";

export const scopeCharactersMax = modelIdCharactersMax;
export const scopesPerKeyMax = 64;

/**
 * A pattern of model ids, case-sensitive, in one of three forms. In a glob, each `*` matches any run of characters,
 * also an empty one. `name` matches that id and all its variants `name:…`. `name:variant` matches that id alone. A
 * request for `name:latest` that `name` answers needs a scope for each of the two ids.
 */
export const scope = z
  .string()
  .min(1, "must not be empty; * allows every model")
  .max(scopeCharactersMax, `must have at most ${scopeCharactersMax} characters`)
  .regex(/^[^\p{C}\p{Z}]*$/u, "must be printable and without spaces");

export const scopes = z
  .array(scope)
  .min(1, "must name at least one scope; * allows every model")
  .max(scopesPerKeyMax, `must be at most ${scopesPerKeyMax} scopes`)
  .readonly();

export function allows(granted: readonly string[], modelId: string): boolean {
  return granted.some((pattern) => (pattern.includes("*") ? globMatches(pattern, modelId) : names(pattern, modelId)));
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
