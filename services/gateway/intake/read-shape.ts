import { z } from "zod";
import { paramsOf } from "./param-of.ts";
import { leafOf, shapeFault } from "./shape-fault.ts";

export interface Shaped<Output> {
  readonly value: Output;
  /** Fields that mean nothing here, by their paths; they are left out, and the caller is told their names. */
  readonly ignored: readonly string[];
}

/**
 * Reads a request against a strict schema. Fields that the schema does not know are ignored by name, at every depth;
 * everything else that does not fit is a fault, and only the first of it is told.
 */
export function readShape<Schema extends z.ZodType>(
  schema: Schema,
  input: Record<string, unknown>,
): Shaped<z.output<Schema>> {
  const { value, issues } = run(schema, input);
  const wrong = issues.find(({ code }) => code !== "unrecognized_keys");
  if (wrong !== undefined) throw shapeFault(leafOf(z.core.util.finalizeIssue(wrong, context, z.core.config())));
  const ignored = issues.flatMap(({ keys, path = [] }) => (Array.isArray(keys) ? paramsOf(path, keys) : []));
  return { value: value as z.output<Schema>, ignored };
}

/** Of a request in which everything is wrong nothing more is looked at than up to the first that is. */
const context = { async: false, abortEarly: true, reportInput: true } as const;

/**
 * What comes of a value, and what is wrong with it. Only the library's core tells both: a field that is not known counts
 * as wrong, and yet all the rest comes out whole and without it. To take such fields out and to read once more takes
 * several times as long, in a request with thousands of them longer than one may keep the others waiting.
 */
function run(schema: z.ZodType, value: unknown): z.core.ParsePayload {
  const payload = schema._zod.run({ value, issues: [] }, context);
  if (payload instanceof Promise) throw new TypeError("the schema of a request has to be synchronous");
  return payload;
}
