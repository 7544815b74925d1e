/** The limits that keys, teams and people have alike. */
import type { z } from "zod";
import { type GivenTerms, type BookLimit, bookLimitRows, type ShownTerms } from "../admin/key-terms.ts";
import { keyLimits, type KeyLimits, termSchema, withLimits } from "./key-record.ts";
import { wordsOf } from "./shown-key.ts";

export const bookLimits = keyLimits.omit({ loadsPerMinute: true });

const shapeOf = (wrap: (schema: z.ZodType) => z.ZodType) =>
  Object.fromEntries(bookLimitRows.map(([name, row]) => [name, wrap(termSchema(row)).describe(wordsOf(row))]));

/** An omitted limit stays as it is; null takes it away. */
export const givenLimits = shapeOf((schema) => schema.nullish()) as {
  readonly [Name in BookLimit]: z.ZodOptional<z.ZodType<GivenTerms[Name]>>;
};
export const shownLimits = shapeOf((schema) => schema.nullable()) as {
  readonly [Name in BookLimit]: z.ZodType<ShownLimits[Name]>;
};

type GivenLimits = Pick<GivenTerms, BookLimit>;
type ShownLimits = { readonly [Name in BookLimit]: NonNullable<ShownTerms[Name]> | null };

export function showLimits(limits: KeyLimits = {}): ShownLimits {
  const stored: Readonly<Record<string, unknown>> = limits;
  return Object.fromEntries(bookLimitRows.map(([name, row]) => [name, stored[row.stored] ?? null])) as ShownLimits;
}

/** Returns limits with those that are given in place of theirs. Undefined if none is left. */
export function changeLimits(limits: KeyLimits | undefined, given: GivenLimits): KeyLimits | undefined {
  const stored = Object.fromEntries(bookLimitRows.map(([name, row]) => [row.stored, given[name]]));
  return withLimits(limits, stored);
}
