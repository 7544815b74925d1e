import { displayed, displayWidth } from "./display-width.ts";

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
