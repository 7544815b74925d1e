import { onOneLine } from "#shared/process/clean-text.ts";

interface TableLayout {
  /** The right-aligned columns, for numbers. */
  readonly right?: readonly string[];
  /** The columns of long texts, which wrap where the table is too wide. */
  readonly wrap?: readonly string[];
  /** The width of the terminal. */
  readonly widthMax?: number | undefined;
  /** Colours a cell of a row. */
  readonly paint?: (text: string, cell: { readonly heading: string; readonly row: number }) => string;
}

/** The width below which no column is wrapped. */
const wrappedMin = 12;
const gap = "  ";

/**
 * Formats rows under their headings, each column as wide as its widest cell. Where that is wider than the terminal, long
 * texts wrap; where they would become too narrow, each row is a block of lines with one field each. The table is for
 * people; programs use `--json`.
 */
export function alignedTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  layout: TableLayout = {},
): string {
  const { right = [], wrap = [], widthMax = Infinity, paint = (text: string) => text } = layout;
  const lines = rows.map((cells) => cells.map(onOneLine));
  const columns = headings.map((heading, at) => {
    const width = Math.max(displayWidth(heading), ...lines.map((cells) => displayWidth(cells[at] ?? "")));
    const least = wrap.includes(heading) ? Math.min(width, Math.max(wrappedMin, heading.length)) : width;
    return { heading, width, least };
  });
  const total = (field: "width" | "least"): number =>
    columns.reduce((sum, column) => sum + column[field], gap.length * (columns.length - 1));
  if (total("least") > widthMax) return records(headings, lines, { widthMax, paint });
  for (let tooWide = total("width") - widthMax; tooWide > 0; tooWide -= 1) {
    const [widest] = columns
      .filter(({ width, least }) => width > least)
      .toSorted((one, other) => other.width - one.width);
    if (widest !== undefined) widest.width -= 1;
  }

  const line = (cells: readonly string[], row: number): string =>
    columns
      .map(({ heading, width }, at) => {
        const cell = cells[at] ?? "";
        const room = " ".repeat(Math.max(0, width - displayWidth(cell)));
        const text = cell === "" || row < 0 ? cell : paint(cell, { heading, row });
        return right.includes(heading) ? room + text : text + room;
      })
      .join(gap)
      .trimEnd();
  return [headings, ...lines]
    .flatMap((cells, index) => {
      const wrapped = columns.map(({ width }, at) => wrapText(cells[at] ?? "", width));
      const height = Math.max(...wrapped.map(({ length }) => length));
      const linesOfRow = Array.from({ length: height }, (_, at) => wrapped.map((each) => each[at] ?? ""));
      return linesOfRow.map((each) => `${line(each, index - 1)}\n`);
    })
    .join("");
}

/** A column of a table: its heading, the text of a row in it, and how it is laid out (see `TableLayout`). */
export type TextColumn<Row> = readonly [heading: string, cell: (row: Row) => string, layout?: "right" | "wrap"];

/** Formats rows by their columns. Empty without rows. */
export function tableOf<Row>(
  columns: readonly TextColumn<Row>[],
  rows: readonly Row[],
  layout: Pick<TableLayout, "widthMax" | "paint"> = {},
): string {
  if (rows.length === 0) return "";
  const laidOut = (as: "right" | "wrap") => columns.filter((column) => column[2] === as).map(([heading]) => heading);
  return alignedTable(
    columns.map(([heading]) => heading),
    rows.map((row) => columns.map(([, cell]) => cell(row))),
    { ...layout, right: laidOut("right"), wrap: laidOut("wrap") },
  );
}

/** Returns the table of a list for `CommandResult`, or the remark for a list without rows. */
export function listed<Row>(columns: readonly TextColumn<Row>[], rows: readonly Row[], none: string) {
  const text = (widthMax: number | undefined): string => tableOf(columns, rows, { widthMax });
  return { text, remark: rows.length === 0 ? none : undefined };
}

/** Formats each row as a block of its fields, without the empty ones. */
function records(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { widthMax, paint }: Required<Pick<TableLayout, "paint">> & { readonly widthMax: number },
): string {
  const column = Math.max(...headings.map(displayWidth)) + gap.length;
  const room = widthMax - column < wrappedMin ? Infinity : widthMax - column;
  const blocks = rows.map((cells, row) =>
    headings.flatMap((heading, at) => {
      const cell = cells[at] ?? "";
      if (cell === "" || cell === "-") return [];
      const begin = heading + " ".repeat(column - displayWidth(heading));
      return wrapText(cell, room).map(
        (text, line) => `${line === 0 ? begin : " ".repeat(column)}${paint(text, { heading, row })}\n`,
      );
    }),
  );
  return blocks.map((block) => block.join("")).join("\n");
}

/** Returns the lines of a text that is at most `widthMax` columns wide. Breaks between words, and within long ones. */
export function wrapText(text: string, widthMax: number): readonly string[] {
  if (displayWidth(text) <= widthMax) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const joined = line === "" ? word : `${line} ${word}`;
    if (displayWidth(joined) <= widthMax) {
      line = joined;
      continue;
    }
    if (line !== "") lines.push(line);
    line = word;
    while (displayWidth(line) > widthMax) {
      const begin = beginning(line, widthMax);
      lines.push(begin);
      line = line.slice(begin.length);
    }
  }
  return [...lines, line];
}

/** Wraps the paragraphs that are too wide for the terminal. Leaves indented lines, such as examples, as they are. */
export function fitParagraphs(text: string, widthMax: number | undefined): string {
  if (widthMax === undefined) return text;
  return text.replace(/^\S.*(?:\n\S.*)*/gm, (paragraph) => {
    const isTooWide = paragraph.split("\n").some((line) => displayWidth(line) > widthMax);
    return isTooWide ? wrapText(paragraph.replaceAll("\n", " "), widthMax).join("\n") : paragraph;
  });
}

const mark = "…";

/** Cuts a text to at most `widthMax` columns. A text that was cut ends in «…». */
export function cutText(text: string, widthMax: number): string {
  if (displayWidth(text) <= widthMax) return text;
  return `${beginning(text, widthMax - displayWidth(mark)).trimEnd()}${mark}`;
}

/** Returns as many characters of a text as fit, and at least one. */
function beginning(text: string, widthMax: number): string {
  let begin = "";
  let room = widthMax;
  for (const { segment } of graphemes.segment(text)) {
    room -= columnsOf(segment);
    if (room < 0 && begin !== "") break;
    begin += segment;
  }
  return begin;
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const wide =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;

/** Returns the width of a character (a grapheme cluster) in columns on most terminals. */
function columnsOf(character: string): number {
  return wide.test(character) ? 2 : 1;
}

function displayWidth(text: string): number {
  return [...graphemes.segment(text)].reduce((columns, { segment }) => columns + columnsOf(segment), 0);
}

/** Cuts a text to a width, or fills it up to that. */
export function fitText(text: string, width: number, side: "left" | "right" = "left"): string {
  const cut = cutText(text, width);
  const room = " ".repeat(Math.max(0, width - displayWidth(cut)));
  return side === "right" ? room + cut : cut + room;
}

/** One line of `fieldLines`. Without a value there is no line. */
export type Field = readonly [name: string, value: string | null | undefined];

/** Writes one field a line, with the values aligned in a column. */
export function fieldLines(fields: readonly Field[]): string {
  const given = fields.filter(([, value]) => typeof value === "string");
  const width = Math.max(...given.map(([name]) => name.length));
  return given.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join("");
}
