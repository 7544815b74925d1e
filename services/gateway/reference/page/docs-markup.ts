/** Text that is HTML already. All other text is escaped wherever it is put into it. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Piece = string | number | Markup | readonly Piece[];

/** HTML as it stands here, with pieces in it that are escaped unless they are HTML themselves. */
export function markup(html: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  return new Markup(
    html.map((text, place) => text + (place < pieces.length ? written(pieces[place] ?? "") : "")).join(""),
  );
}

export const nothing = new Markup("");

/** A sentence in which what stands between backticks is code. */
export function prose(sentence: string): Markup {
  const parts = sentence.split("`");
  return markup`${parts.map((part, place) => (place % 2 === 1 ? markup`<code>${part}</code>` : part))}`;
}

function written(piece: Piece): string {
  if (piece instanceof Markup) return piece.text;
  if (typeof piece === "string") return escaped(piece);
  return typeof piece === "number" ? String(piece) : piece.map(written).join("");
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? "");
}
