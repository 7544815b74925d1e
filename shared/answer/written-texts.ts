/**
 * Pieces of the first answer's text as they stand in JSON, between its quotes, where JSON writes them as they are: UTF-8
 * without quotes, backslashes or control characters. They lie in other bytes, and none of them is empty.
 */
export interface WrittenTexts {
  readonly bytes: Uint8Array;
  /** Where each begins and where it ends, one after the other. */
  readonly bounds: readonly number[];
}
