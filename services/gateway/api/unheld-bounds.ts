import { Fault } from "#shared/fault/fault.ts";
import { type ChatBody, numberBounds } from "#shared/protocol/job-bodies.ts";
import { paramOf } from "../http/read-shape.ts";
import type { JobOffer } from "../jobs/job-listener.ts";
import type { Rendering } from "./render-chat.ts";

/** Returns the paths of the bounds of numbers in the schema of an answer; undefined if there are none. */
export function boundsOf({ response_format: format }: ChatBody): readonly string[] | undefined {
  const schema = format?.type === "json_schema" ? format.json_schema.schema : undefined;
  const found = boundsIn(schema, ["response_format", "json_schema", "schema"]);
  return found.length === 0 ? undefined : found;
}

/** Keywords whose values are answers, in which a key is no keyword. */
const values: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);

function boundsIn(schema: unknown, path: readonly PropertyKey[]): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    const at = [...path, Array.isArray(schema) ? Number(key) : key];
    if (typeof value === "number") return numberBounds.includes(key) ? [paramOf(at)] : [];
    return values.has(key) ? [] : boundsIn(value, at);
  });
}

/** Returns the names, in the client's own words, of those bounds that the runtime of an offer does not hold. */
export function unheldBounds(
  bounds: readonly string[],
  { chosen }: JobOffer,
  adaptFault: Rendering["adaptFault"],
): readonly string[] {
  // The runtime of GGUF files: its grammars know no bounds of numbers.
  if (chosen.model.runtime !== "llama") return [];
  const names = bounds.map(
    (param) => adaptFault(new Fault("unsupported_value", { message: "", param })).param ?? param,
  );
  return [...new Set(names)];
}
