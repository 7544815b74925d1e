import { hash } from "node:crypto";
import { SeededRandom } from "./seeded-random.ts";

/**
 * Filler takes the place of texts that may not be copied, such as a client's own prompt. It has the same lines, the same
 * length and the same tags. A line always gets the same filler, so two texts differ where the originals differ.
 */

/** Stands for one piece of filler in a recording: its seed in hexadecimal digits and its length. */
const mark = /⟦([0-9a-f]{6}) (\d+)⟧/g;
const words = ["a", "of", "the", "line", "with", "these", "filler", "recorded", "something"] as const;
const tagOrNothing = /^\s*(?:<\/?[\w-]+>)?\s*$/;

/** Replaces a text by marks, except for line breaks, indents, lines of one tag, and the texts in `kept`. */
export function masked(text: string, kept: RegExp): string {
  const lines = text.split("\n");
  return lines.map((line) => (tagOrNothing.test(line) ? line : maskedLine(line, kept))).join("\n");
}

function maskedLine(line: string, kept: RegExp): string {
  // A split by a pattern with one group has the separators at the odd places.
  return line
    .split(kept)
    .map((piece, place) => (place % 2 === 1 ? piece : maskedPiece(piece)))
    .join("");
}

function maskedPiece(piece: string): string {
  const indent = /^\s*/.exec(piece)?.[0] ?? "";
  const rest = piece.slice(indent.length);
  return rest === "" ? piece : `${indent}⟦${hash("sha256", rest).slice(0, 6)} ${rest.length}⟧`;
}

/** A pattern with one group that finds each of these texts. */
export function anyOf(texts: readonly string[]): RegExp {
  const longestFirst = texts.filter((text) => text !== "").toSorted((a, b) => b.length - a.length);
  return new RegExp(
    `(${longestFirst.map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join("|") || "(?!)"})`,
  );
}

/** Replaces each mark in a text by words of its length. */
export function filled(text: string): string {
  return text.replaceAll(mark, (_all, seed: string, length: string) =>
    wordsOf(Number.parseInt(seed, 16), Number(length)),
  );
}

function wordsOf(seed: number, length: number): string {
  const random = new SeededRandom(seed);
  let text = "";
  while (text.length < length) text += `${random.oneOf([words[0], ...words.slice(1)])} `;
  return length === 0 ? "" : `${text.slice(0, length - 1)}.`;
}
