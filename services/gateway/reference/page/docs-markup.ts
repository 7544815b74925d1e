/** HTML text. `markup` escapes every string that is not `Markup`. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Piece = string | number | Markup | readonly Piece[];

/** Builds HTML from a template literal. Escapes its pieces unless they are `Markup`. */
export function markup(html: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  return new Markup(
    html.map((text, place) => text + (place < pieces.length ? written(pieces[place] ?? "") : "")).join(""),
  );
}

export const nothing = new Markup("");

/** Renders a sentence. Text between backticks becomes code. */
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
