import { setImmediate as nextTurn } from "node:timers/promises";

/** Characters that are counted in one turn of the event loop. Counting these takes some milliseconds. */
const charactersAtOnce = 1024 * 1024;

/** Counts words without splitting the texts: a prompt may have many millions of characters. */
export async function countWords(texts: Iterable<string>): Promise<number> {
  let count = 0;
  let left = charactersAtOnce;
  for (const text of texts) {
    let inWord = false;
    let at = 0;
    while (at < text.length) {
      if (left === 0) {
        await nextTurn();
        left = charactersAtOnce;
      }
      const end = Math.min(text.length, at + left);
      left -= end - at;
      for (; at < end; at++) {
        const isSpace = text.charCodeAt(at) <= 0x20;
        if (!isSpace && !inWord) count++;
        inWord = !isSpace;
      }
    }
  }
  return count;
}
