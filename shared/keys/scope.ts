import { z } from "zod";
import { modelIdCharactersMax } from "../model/model.ts";

export const scopeCharactersMax = modelIdCharactersMax;
export const scopesPerKeyMax = 64;

/**
 * A pattern of model ids, case-sensitive, in one of three forms: a glob, in which each `*` stands for any run of
 * characters, none included; `name`, which is that id and all its variants `name:…`; or `name:variant`, which is that
 * id alone.
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
 * Each piece between two stars takes its leftmost place. That never has to be taken back, since a later place would
 * only leave less room for the pieces after it; so a pattern made to be slow is not.
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
