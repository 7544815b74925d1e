import { InvalidArgumentError } from "commander";
import { z } from "zod";

/** Reads the value of an option; what is wrong with it is told as wrong usage, with the option's name. */
export function readBy<Value>(schema: z.ZodType<Value, string>): (text: string) => Value {
  return (text) => {
    const read = schema.safeParse(text);
    if (read.success) return read.data;
    throw new InvalidArgumentError(`It ${read.error.issues[0]?.message}.`);
  };
}

/** What a limit is set to that is to be none; commander would make an empty text of a null. */
export const none = "none";
export type OrNone<Value> = Value | typeof none;

/** The same, where one of these words says that there is to be none. */
export function readByUnless<Value>(
  words: readonly string[],
  schema: z.ZodType<Value, string>,
): (text: string) => OrNone<Value> {
  const read = readBy(schema);
  return (text) => (words.includes(text) ? none : read(text));
}

/** `a,b` and `a, b`. */
export const commaList = z.string().transform((text): readonly string[] => text.split(",").map((each) => each.trim()));
