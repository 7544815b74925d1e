import { InvalidArgumentError } from "commander";
import { z } from "zod";

/** Returns a parser of an option's value. A value that does not fit becomes a usage error that names the option. */
export function readBy<Value>(schema: z.ZodType<Value, string>): (text: string) => Value {
  return (text) => {
    const read = schema.safeParse(text);
    if (read.success) return read.data;
    throw new InvalidArgumentError(`It ${read.error.issues[0]?.message}.`);
  };
}

/** The value that removes a limit. Commander would turn null into an empty string. */
export const none = "none";
export type OrNone<Value> = Value | typeof none;

/** Like `readBy`, but returns `none` for each of these words. */
export function readByUnless<Value>(
  words: readonly string[],
  schema: z.ZodType<Value, string>,
): (text: string) => OrNone<Value> {
  const read = readBy(schema);
  return (text) => (words.includes(text) ? none : read(text));
}

/** Reads a list with commas: `a,b` or `a, b`. */
export const commaList = z.string().transform((text): readonly string[] => text.split(",").map((each) => each.trim()));
