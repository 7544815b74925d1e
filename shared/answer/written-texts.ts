/**
 * Pieces of the first choice's text, in JSON's written form without the quotation marks: UTF-8 without quotes,
 * backslashes or control characters, so that no escapes are needed. They are slices of `bytes`, which holds other bytes
 * too. No piece is empty.
 */
export interface WrittenTexts {
  readonly bytes: Uint8Array;
  /** Start and end of each piece, one after the other. */
  readonly bounds: readonly number[];
}
