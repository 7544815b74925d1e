import { z } from "zod";

// Parts of answers of all APIs.

export const count = z.int().nonnegative();

/** Returns the schema of an event of a stream whose events have names. */
export const event = <Name extends string, Fields extends z.ZodRawShape>(type: Name, fields: Fields) =>
  z.object({ type: z.literal(type).describe("The kind of the event; its name says the same."), ...fields });
