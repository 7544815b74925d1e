import { z } from "zod";
import { Fault } from "../fault/fault.ts";

/**
 * Reads what a store keeps. What cannot be read was written by another version, or damaged: then nobody can say what
 * the key is worth, which is the store's failure and not the caller's.
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
