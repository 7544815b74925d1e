import { z } from "zod";
import { Fault } from "../fault/fault.ts";

/**
 * Parses stored data. Data that cannot be parsed was written by another version, or is damaged. The key cannot be
 * judged then, and that is a failure of the store, not of the caller.
 */
export function readStored<Schema extends z.ZodType>(schema: Schema, read: () => unknown): z.output<Schema> {
  try {
    return schema.parse(read());
  } catch (error) {
    throw new Fault("backend_unavailable", {
      message: "The key store holds a record that this version of Trunkline cannot read.",
      internal: onOneLine(error),
    });
  }
}

function onOneLine(error: unknown): string {
  if (error instanceof z.ZodError) return z.prettifyError(error).replace(/\s+/g, " ");
  return error instanceof Error ? error.message : String(error);
}
