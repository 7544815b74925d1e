/** The ranking of what a person looks for. Pure. */
export interface Findable {
  readonly kind: string;
  readonly text: string;
  readonly address: string;
}

/** Returns the entries that contain each of the words, those first in which a word is the beginning of one. */
export function findBest(entries: readonly Findable[], asked: string, max: number): Findable[] {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  return entries
    .map((entry) => {
      const text = `${entry.text} ${entry.kind}`.toLowerCase();
      const ranks = words.map((word) => rankOf(word, text));
      return { entry, rank: Math.max(0, ...ranks) };
    })
    .filter(({ rank }) => rank < none)
    .toSorted((one, other) => one.rank - other.rank)
    .slice(0, max)
    .map(({ entry }) => entry);
}

const none = 3;

function rankOf(word: string, text: string): number {
  const at = text.indexOf(word);
  if (at <= 0) return at === 0 ? 0 : none;
  const parts = text.split(/[^\p{L}\p{N}]+/u);
  return parts.some((part) => part.startsWith(word)) ? 1 : 2;
}
