import type { Book } from "#shared/records/book.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import type { Held, Reservation } from "../../services/gateway/limits/limits.ts";

/** The book of a key. */
export function bookOf(limits: KeyLimits, id = "abcdefABCDEF"): Book {
  return { id, limits, noun: "This key" };
}

/** The part of a key's book that a request of the key alone holds. */
export function heldOf({ held }: Reservation): Held & { readonly budgetTokens: number } {
  const [only, ...others] = held;
  if (only === undefined || others.length > 0) throw new Error(`the reservation has a part of ${held.length} books`);
  return { ...only, budgetTokens: only.reserved.tokens };
}

/** A part of a book with so many tokens reserved of its budget. */
export function heldIn(book: Book, { tokens = 0, budgetTokens = 0, money = 0 } = {}): Held {
  return { book, tokens, reserved: { tokens: budgetTokens, money } };
}
