/** Functions of Node's `JSON` that TypeScript's types lack. */
interface ExactJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const exact = JSON as unknown as ExactJson;

/** Returns true if the text may hold an integer with more digits than a number keeps. */
export function mayHoldBigInteger(text: string): boolean {
  return /\d{16}/.test(text);
}

/**
 * Parses JSON and keeps all digits of an integer that no number can hold. Such an integer becomes a raw JSON value,
 * whose only use is to be written again unchanged. Slower than `JSON.parse`.
 */
export function parseExactly(text: string): unknown {
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && isBigInteger(source, value) ? exact.rawJSON(source) : value,
  );
}

/** Returns true for an integer that `parseExactly` kept as raw JSON. */
export function isHeldInteger(value: unknown): boolean {
  return exact.isRawJSON(value);
}

/** Returns true if an integer would be written with other digits after it was read as a number. */
export function isBigInteger(literal: string, value: number): boolean {
  return literal.length > 15 && /^-?\d+$/.test(literal) && String(value) !== literal;
}
