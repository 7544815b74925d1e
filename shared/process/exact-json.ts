/** What this runtime's JSON can do beyond what its types say. */
interface ExactJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/** Whether a text may hold an integer with more digits than a number keeps. */
export function mayHoldBigInteger(text: string): boolean {
  return /\d{16}/.test(text);
}

/**
 * Reads JSON so that an integer with too many digits for a number keeps them all: it becomes something that is written
 * again as it came, and is nothing else. Slower than reading it as usual.
 */
export function parseExactly(text: string): unknown {
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && isBigInteger(source, value) ? exact.rawJSON(source) : value,
  );
}

/** Whether this is an integer that was read by `parseExactly` and no number holds. */
export function isHeldInteger(value: unknown): boolean {
  return exact.isRawJSON(value);
}

/** Whether an integer would be written otherwise than it came, if it were read as a number. */
export function isBigInteger(literal: string, value: number): boolean {
  return literal.length > 15 && /^-?\d+$/.test(literal) && String(value) !== literal;
}
