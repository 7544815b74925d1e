import type { z } from "zod";
import { leafIssues, paramOf, shapeFault } from "./shape-fault.ts";

export interface Shaped<Output> {
  readonly value: Output;
  /** Fields that mean nothing here, by their paths; they are left out, and the caller is told their names. */
  readonly ignored: readonly string[];
}

/**
 * Reads a request against a strict schema. Fields that the schema does not know are ignored by name, at every depth;
 * everything else that does not fit is a fault. `input` is the caller's own to change: ignored fields are taken out.
 */
export function readShape<Schema extends z.ZodType>(
  schema: Schema,
  input: Record<string, unknown>,
): Shaped<z.output<Schema>> {
  const first = schema.safeParse(input, { reportInput: true });
  if (first.success) return { value: first.data, ignored: [] };
  const issues = leafIssues(first.error.issues);
  const wrong = issues.filter(({ issue }) => issue.code !== "unrecognized_keys");
  if (wrong.length > 0) throw shapeFault(wrong);
  const ignored: string[] = [];
  for (const { issue, path } of issues) {
    if (issue.code !== "unrecognized_keys") continue;
    for (const key of issue.keys) {
      ignored.push(paramOf([...path, key]));
      remove(input, path, key);
    }
  }
  const again = schema.safeParse(input, { reportInput: true });
  if (again.success) return { value: again.data, ignored };
  throw shapeFault(leafIssues(again.error.issues));
}

function remove(root: Record<string, unknown>, path: readonly PropertyKey[], key: string): void {
  let holder: unknown = root;
  for (const step of path) holder = Reflect.get(Object(holder), step);
  Reflect.deleteProperty(Object(holder), key);
}
