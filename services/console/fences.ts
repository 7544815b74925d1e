/** The fenced code in an answer of a model. Pure: the text stays text, and no markup in it is read. */

export interface Piece {
  readonly text: string;
  /** The language of fenced code, or "" for code without one. Undefined for prose. */
  readonly language?: string;
}

/** Three or more backticks or tildes. Words may follow that have no backtick. */
const fence = /^ {0,3}(`{3,}|~{3,})/;

/** Splits an answer into prose and fenced code. Code whose end has not come reaches to the end of the text. */
export function splitFences(answer: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let lines: string[] = [];
  let open: { readonly mark: string; readonly language: string } | undefined;
  const close = (): void => {
    const text = lines.join("\n");
    if (open !== undefined) pieces.push({ text, language: open.language });
    else if (text.trim() !== "") pieces.push({ text: text.trim() });
    lines = [];
  };
  for (const line of answer.split("\n")) {
    const [head = "", found = ""] = fence.exec(line) ?? [];
    const words = line.slice(head.length).trim();
    const mark = words.includes("`") ? "" : found;
    const isEnd = open !== undefined && mark.startsWith(open.mark) && words === "";
    if (isEnd || (open === undefined && mark !== "")) {
      close();
      open = isEnd ? undefined : { mark, language: words.split(/\s/)[0] ?? "" };
    } else lines.push(line);
  }
  close();
  return pieces;
}
