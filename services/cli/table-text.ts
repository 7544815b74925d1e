/**
 * Formats rows under their headings, each column as wide as its widest cell. The columns in `right` are right-aligned,
 * for numbers. The table is for people; programs use `--json`.
 */
export function alignedTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { right = [] }: { readonly right?: readonly string[] } = {},
): string {
  const lines = [headings, ...rows].map((cells) => cells.map(onOneLine));
  const widths = headings.map((_, column) => Math.max(...lines.map((cells) => displayWidth(cells[column] ?? ""))));
  const isRight = headings.map((heading) => right.includes(heading));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => {
        const room = " ".repeat((widths[column] ?? 0) - displayWidth(cell));
        return isRight[column] ? room + cell : cell + room;
      })
      .join("  ")
      .trimEnd();
  return lines.map((cells) => `${line(cells)}\n`).join("");
}

const mark = "…";

/** Cuts a text to at most `widthMax` columns. A text that was cut ends in «…». */
export function cutText(text: string, widthMax: number): string {
  if (displayWidth(text) <= widthMax) return text;
  let cut = "";
  let room = widthMax - displayWidth(mark);
  for (const { character, width } of displayed(text)) {
    room -= width;
    if (room < 0) break;
    cut += character;
  }
  return `${cut.trimEnd()}${mark}`;
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const wide =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;

/** Yields the characters of a text (grapheme clusters), each with its width in columns on most terminals. */
function* displayed(text: string): Generator<{ readonly character: string; readonly width: number }> {
  for (const { segment } of graphemes.segment(text)) yield { character: segment, width: wide.test(segment) ? 2 : 1 };
}

export function displayWidth(text: string): number {
  let sum = 0;
  for (const { width } of displayed(text)) sum += width;
  return sum;
}

/**
 * Replaces control characters in a text from clients or other hosts. Such a text can then neither end its line nor
 * control the terminal.
 */
export function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "?");
}

/** Writes one field a line, with the values aligned in a column. */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join("");
}
