import { z } from "zod";
import { paramsOf } from "./param-of.ts";
import { leafOf, shapeFault } from "./shape-fault.ts";

export interface Shaped<Output> {
  readonly value: Output;
  /** Paths of unknown fields; they are left out, and the client gets their names. */
  readonly ignored: readonly string[];
}

/**
 * Reads a request against a strict schema. Fields that the schema does not know are ignored and listed, at every depth.
 * Everything else that does not match is a fault; only the first one is reported.
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

/** `abortEarly` stops at the first error, also for a request in which everything is wrong. */
const context = { async: false, abortEarly: true, reportInput: true } as const;

/**
 * Validates a value and returns the output with all issues. Only the library's core returns both. An unknown field is
 * an issue, and yet the rest of the output is whole and without it. To remove such fields and to read again takes
 * several times as long. With thousands of them it takes longer than other requests may be kept waiting.
 */
function run(schema: z.ZodType, value: unknown): z.core.ParsePayload {
  const payload = schema._zod.run({ value, issues: [] }, context);
  if (payload instanceof Promise) throw new TypeError("the schema of a request has to be synchronous");
  return payload;
}
