import type { Output } from "../surroundings.ts";

const home = "\u001b[H";
const clearScreen = "\u001b[2J";
const clearToLineEnd = "\u001b[K";
const clearBelow = "\u001b[J";
const defaultRows = 24;

/**
 * Returns a function that shows a block of lines. On a terminal each block replaces the one before, as far as the
 * screen has room. Elsewhere the blocks follow each other.
 */
export function redraw(output: Output): (block: string) => void {
  if (output.isTTY !== true) return (block) => void output.write(block);
  let drawn = false;
  return (block) => {
    const lines = block.split("\n").slice(0, -1);
    const rows = (output.rows ?? defaultRows) - 1;
    const hidden = lines.length - rows;
    const shown = hidden > 0 ? [...lines.slice(0, rows - 1), `… and ${hidden + 1} more`] : lines;
    const text = shown.map((line) => `${line}${clearToLineEnd}\n`).join("");
    output.write(`${drawn ? "" : clearScreen}${home}${text}${clearBelow}`);
    drawn = true;
  };
}
