import { z } from "zod";

// Parts of the answers that several APIs describe.

export const count = z.int().nonnegative();
export const text = (meaning: string) => z.string().describe(meaning);
export const textOrNull = (meaning: string) => z.string().nullable().describe(meaning);
export const nothing = (why: string) => z.null().describe(`Always null: ${why}.`);

/** Returns the schema of an object with a `type`. */
export const typed = <Name extends string, Fields extends z.ZodRawShape>(type: Name, fields: Fields) =>
  z.object({ type: z.literal(type), ...fields });
/** Returns the schema of an event of a stream whose events have names. */
export const event = <Name extends string, Fields extends z.ZodRawShape>(type: Name, fields: Fields) =>
  z.object({ type: z.literal(type).describe("The kind of the event; its name says the same."), ...fields });
