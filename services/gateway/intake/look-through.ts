import { isHeldInteger } from "#shared/process/exact-json.ts";
import type { JsonPath } from "./find-in-json.ts";

/** A value or key in parsed JSON that would not arrive as it was sent. */
export interface Treacherous {
  readonly path: JsonPath;
  /** The problem, as the end of a sentence that begins with the path. */
  readonly what: string;
}

/** The result of a walk through all values of a request. */
export interface LookedThrough {
  /** Number of keys of all objects together; incomplete when `treacherous` is set. */
  readonly keys: number;
  readonly treacherous: Treacherous | undefined;
}

const halfCharacter = "holds half of a character: an escaped surrogate without its other half";
const prototype = "has a name that some readers take for a change to all objects";

/**
 * Finds text with a lone surrogate, which would be replaced when the text is written again. Finds also keys that would
 * reach into every object of a careless reader: `__proto__`, and `prototype` within `constructor`.
 */
export function lookThrough(value: unknown): LookedThrough {
  const seen = { keys: 0 };
  const found = look(value, seen);
  return { keys: seen.keys, treacherous: found && { what: found.what, path: found.steps.toReversed() } };
}

/** A finding, with its steps from the last to the first. */
interface Found {
  readonly what: string;
  readonly steps: (string | number)[];
}

function look(value: unknown, seen: { keys: number }): Found | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : { what: halfCharacter, steps: [] };
  if (typeof value !== "object" || value === null || isHeldInteger(value)) return undefined;
  if (!Array.isArray(value)) return lookAtFields(value, seen);
  for (let place = 0; place < value.length; place += 1) {
    const found = look(value[place], seen);
    if (found !== undefined) return { ...found, steps: [...found.steps, place] };
  }
  return undefined;
}

function lookAtFields(holder: object, seen: { keys: number }): Found | undefined {
  for (const key of Object.keys(holder)) {
    seen.keys += 1;
    const value: unknown = Reflect.get(holder, key);
    const what = key.isWellFormed() ? reachOf(key, value) : halfCharacter;
    const found = what === undefined ? look(value, seen) : { what, steps: [] };
    if (found !== undefined) return { ...found, steps: [...found.steps, key] };
  }
  return undefined;
}

/**
 * Returns the problem with a key that could reach a prototype. A JSON schema may have a property called `constructor`:
 * it is refused only if its value holds a `prototype`.
 */
function reachOf(key: string, value: unknown): string | undefined {
  if (key === "__proto__") return prototype;
  if (key !== "constructor" || typeof value !== "object" || value === null) return undefined;
  return Object.hasOwn(value, "prototype") ? `holds a 'prototype', and so ${prototype}` : undefined;
}
