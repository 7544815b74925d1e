import type { KeyLimits, KeyRecord } from "./key-record.ts";

/**
 * The counters of one who shares limits: a key, a person, a team or an end user. The object lasts as long as its limits do, so
 * that what is remembered of it ends with them.
 */
export interface Book {
  readonly id: string;
  readonly limits: KeyLimits;
  /** Begins a refusal: "This key", "The team research". */
  readonly noun: string;
}

/** Returns a book's noun as it stands within a sentence. */
export function inSentence(noun: string): string {
  return noun.slice(0, 1).toLowerCase() + noun.slice(1);
}

const ownBooks = new WeakMap<KeyRecord, readonly Book[]>();

/** Returns the books that the requests of a key are admitted to, in the order in which they refuse. */
export function booksOf(key: KeyRecord): readonly Book[] {
  const known = ownBooks.get(key);
  if (known !== undefined) return known;
  const { id, limits } = key;
  const books = limits === undefined ? [] : [{ id, limits, noun: "This key" }];
  ownBooks.set(key, books);
  return books;
}
