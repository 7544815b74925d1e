/**
 * Draws a terminal as an SVG image. Reads the text with its colours from standard input, as `tmux capture-pane` prints
 * it:
 *
 *   tmux capture-pane -p -e -t <session> | npm run -s picture > infra/first-minute.svg
 */
import { readFileSync } from "node:fs";

const fontPx = 14;
const cellPx = 8.43;
const linePx = 19;
const paddingPx = 16;
const barPx = 30;
const paper = "#16181d";
const ink = "#d7dae0";
/** The colours of SGR codes 30 to 37 and 90 to 97. */
const colours = ["#16181d", "#f07178", "#9ccc65", "#ffcb6b", "#82aaff", "#c792ea", "#5ccfe6", "#d7dae0"];

interface Style {
  readonly colour: string;
  readonly bold: boolean;
  readonly faint: boolean;
}
const plain: Style = { colour: ink, bold: false, faint: false };

/** Applies one SGR code to a style. Unknown codes change nothing. */
function styleAfter(style: Style, code: number): Style {
  if (code === 0) return plain;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, faint: true };
  if (code === 22) return { ...style, bold: false, faint: false };
  if (code === 39) return { ...style, colour: ink };
  const colour = code >= 90 ? colours[code - 90] : colours[code - 30];
  return colour === undefined ? style : { ...style, colour };
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll(" ", "\u00a0");

const lines = readFileSync(0, "utf8").trimEnd().split("\n");
let style = plain;
let columns = 0;
const rows = lines.map((line, row) => {
  let column = 0;
  const spans: string[] = [];
  // oxlint-disable-next-line no-control-regex -- terminals separate colours by this character
  for (const piece of line.split(/(\u001b\[[\d;]*m)/)) {
    // oxlint-disable-next-line no-control-regex
    const codes = /^\u001b\[([\d;]*)m$/.exec(piece)?.[1];
    if (codes !== undefined) {
      for (const code of codes.split(";")) style = styleAfter(style, Number(code));
    } else if (piece !== "") {
      const { colour, bold, faint } = style;
      const weight = bold ? ' font-weight="bold"' : "";
      const opacity = faint ? ' opacity="0.6"' : "";
      const x = (paddingPx + column * cellPx).toFixed(1);
      spans.push(`<tspan x="${x}" fill="${colour}"${weight}${opacity}>${escaped(piece)}</tspan>`);
      column += piece.length;
    }
  }
  columns = Math.max(columns, column);
  return `<text y="${barPx + paddingPx + row * linePx}">${spans.join("")}</text>`;
});
const width = Math.ceil(columns * cellPx + 2 * paddingPx);
const height = barPx + paddingPx + rows.length * linePx;
const lights = ["#f07178", "#ffcb6b", "#9ccc65"].map(
  (fill, index) => `<circle cx="${18 + index * 18}" cy="15" r="5" fill="${fill}"/>`,
);
process.stdout
  .write(`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<rect width="100%" height="100%" rx="8" fill="${paper}"/>
${lights.join("")}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${fontPx}">
${rows.filter((row) => row.includes("tspan")).join("\n")}
</g>
</svg>
`);
