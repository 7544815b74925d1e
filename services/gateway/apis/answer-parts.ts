import { z } from "zod";

// Parts of the answers that several APIs describe. The meaning of a field stands in openapi/words.md.

export const text = z.string();
export const maybeText = text.optional();
export const textOrNull = text.nullable();
export const count = z.int().nonnegative();
export const numbers = z.array(z.number());
export const nothing = (why: string) => z.null().describe(`Always null: ${why}.`);

/** Returns the schema of an object with a `type`. */
export const typed = <Name extends string, Fields extends z.ZodRawShape>(type: Name, fields: Fields) =>
  z.object({ type: z.literal(type), ...fields });
/** Returns the schema of an event of a stream whose events have names. */
export const event = <Name extends string, Fields extends z.ZodRawShape>(type: Name, fields: Fields) =>
  z.object({ type: z.literal(type).describe("The kind of the event; its name says the same."), ...fields });
