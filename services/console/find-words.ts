/** The ranking of what a person looks for. Pure. */
import { findRows } from "./table-rows.ts";

export interface Findable {
  readonly kind: string;
  readonly text: string;
  readonly address: string;
}

/** Returns the entries that have each of the words, those first that begin with what was typed, or have a part that does. */
export function findBest(entries: readonly Findable[], asked: string, max: number): readonly Findable[] {
  const typed = asked.trim().toLowerCase();
  const rankOf = ({ text }: Findable): number => {
    const at = text.toLowerCase().indexOf(typed);
    return at === 0 ? 0 : at > 0 && /[^\p{L}\p{N}]/u.test(text.charAt(at - 1)) ? 1 : 2;
  };
  const found = findRows(entries, [({ text }) => text, ({ kind }) => kind], typed);
  return found.toSorted((one, other) => rankOf(one) - rankOf(other)).slice(0, max);
}
