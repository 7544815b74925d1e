import * as fc from "fast-check";

const pieces = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.constantFrom('"', "\\", "\n", "\u0000", "😀", "é", "”", "/", "\u2028", "\ud7ff", "\ue000"),
);

/** Texts of all lengths around those at which they are looked at otherwise. */
export const longText = fc
  .tuple(fc.array(pieces, { minLength: 1, maxLength: 20 }), fc.integer({ min: 2_100, max: 13_000 }))
  .map(([some, length]) => some.join("").padEnd(1, "a").repeat(length).slice(0, length).toWellFormed());

/** A text as JSON may write it: as it is, with all or some characters escaped, or as other libraries escape. */
export function writtenIn(text: string, how: number): string {
  const usual = JSON.stringify(text).slice(1, -1);
  switch (how % 4) {
    case 0:
      return usual;
    case 1:
      return usual.replaceAll("/", "\\/");
    case 2:
      return text.replaceAll(/[^]/g, escaped);
    default:
      return usual.replaceAll(/[^\x20-\x7e]/g, (unit) => escaped(unit).toUpperCase().replace("U", "u"));
  }
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
