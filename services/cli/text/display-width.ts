const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const wide =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;

/** Yields the characters of a text (grapheme clusters), each with its width in columns on most terminals. */
export function* displayed(text: string): Generator<{ readonly character: string; readonly width: number }> {
  for (const { segment } of graphemes.segment(text)) yield { character: segment, width: wide.test(segment) ? 2 : 1 };
}

export function displayWidth(text: string): number {
  let sum = 0;
  for (const { width } of displayed(text)) sum += width;
  return sum;
}
