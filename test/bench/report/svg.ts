/** The look of all plots: a white panel of its own, which is as readable on a dark page as on a light one. */
export const ink = { text: "#1f2328", faint: "#59636e", axis: "#818b98", grid: "#e4e8ec", panel: "#ffffff" } as const;

/** Told apart also by those who see few colours, and in print. */
export const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#6b7480"] as const;

export const fontSize = 12;
const font = "-apple-system, BlinkMacSystemFont, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif";

export interface Panel {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  /** What the plot shows, for who cannot see it. */
  readonly description: string;
}

export function panel({ width, height, title, description }: Panel, content: readonly string[]): string {
  const box = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${box} role="img" font-family="${font}" font-size="${fontSize}">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(description)}</desc>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6" fill="${ink.panel}" stroke="#d1d9e0"/>`,
    textAt({ x: 16, y: 26 }, title, { size: 15, weight: 600 }),
    ...content,
    "</svg>",
    "",
  ].join("\n");
}

export interface Place {
  readonly x: number;
  readonly y: number;
}

export function textAt(
  { x, y }: Place,
  text: string,
  look: {
    readonly anchor?: "start" | "middle" | "end";
    readonly fill?: string;
    readonly size?: number;
    readonly weight?: number;
    /** Degrees about its own place. */
    readonly turn?: number;
  } = {},
): string {
  const { anchor = "start", fill = ink.text, size, weight, turn } = look;
  const attributes = [
    `x="${at(x)}" y="${at(y)}" text-anchor="${anchor}" fill="${fill}"`,
    size === undefined ? "" : `font-size="${size}"`,
    weight === undefined ? "" : `font-weight="${weight}"`,
    turn === undefined ? "" : `transform="rotate(${turn} ${at(x)} ${at(y)})"`,
  ].filter((attribute) => attribute !== "");
  return `<text ${attributes.join(" ")}>${escaped(text)}</text>`;
}

export function lineFrom(from: Place, to: Place, stroke: string, width = 1): string {
  const ends = `x1="${at(from.x)}" y1="${at(from.y)}" x2="${at(to.x)}" y2="${at(to.y)}"`;
  return `<line ${ends} stroke="${stroke}" stroke-width="${width}"/>`;
}

/** A line from the least to the most, with an end across at both; nothing where they are one. */
export function whisker(from: Place, to: Place, stroke: string = ink.text): string {
  if (from.x === to.x && from.y === to.y) return "";
  const isUpright = from.x === to.x;
  const [dx, dy] = isUpright ? [4, 0] : [0, 4];
  const cap = ({ x, y }: Place): string => lineFrom({ x: x - dx, y: y - dy }, { x: x + dx, y: y + dy }, stroke, 1.2);
  return [lineFrom(from, to, stroke, 1.2), cap(from), cap(to)].join("");
}

export function rectangle(from: Place, size: { width: number; height: number }, fill: string, opacity = 1): string {
  const box = `x="${at(from.x)}" y="${at(from.y)}" width="${at(size.width)}" height="${at(size.height)}"`;
  return `<rect ${box} fill="${fill}"${opacity === 1 ? "" : ` fill-opacity="${opacity}"`}/>`;
}

export function circle({ x, y }: Place, fill: string, stroke: string = fill): string {
  return `<circle cx="${at(x)}" cy="${at(y)}" r="4" fill="${fill}" stroke="${stroke}" stroke-width="2"/>`;
}

/** Names with a patch of their colour, in a row that begins at a place. */
export function legend(place: Place, entries: readonly { readonly name: string; readonly colour: string }[]): string {
  let { x } = place;
  return entries
    .map(({ name, colour }) => {
      const drawn =
        rectangle({ x, y: place.y - 9 }, { width: 11, height: 11 }, colour) + textAt({ x: x + 16, y: place.y }, name);
      x += 16 + widthOf(name) + 18;
      return drawn;
    })
    .join("");
}

/** About as wide as a text gets in any of the fonts. */
export function widthOf(text: string): number {
  return text.length * fontSize * 0.58;
}

export function escaped(text: string): string {
  return text
    .replace(/[^\t\n\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "?")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** A tenth of a pixel is as exact as needs be, and files that were drawn twice are equal. */
function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}
