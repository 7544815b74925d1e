import { isDeepStrictEqual } from "node:util";
import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";

/** A text that cannot be edited, in words that follow the name of its file. */
export class UneditableText extends Error {
  override readonly name = "UneditableText";
}

export type JsonPath = readonly (string | number)[];

const byteOrderMark = "\uFEFF";

/** Returns the value of a JSON text with comments. Undefined for a text without any value. */
export function readJson(text: string): unknown {
  return valueOf(treeOf(text));
}

/**
 * Sets one value in a JSON text with comments and trailing commas. Missing objects and arrays on the way are made. All
 * other bytes stay, except for a comma before a new value.
 */
export function setJson(text: string, path: JsonPath, value: unknown): string {
  const edited = edit(text, path, value);
  const tree = treeOf(edited);
  const written = path.reduce<unknown>((around, step) => Object(around)[step] as unknown, valueOf(tree));
  if (isDeepStrictEqual(written, value)) return edited;
  throw new UneditableText(`names ${path.join(".")} twice: remove one of them first`);
}

function edit(text: string, path: JsonPath, value: unknown): string {
  const tree = treeOf(text);
  const style = styleOf(text);
  if (tree === undefined) {
    const before = text === "" || text.endsWith("\n") ? text : `${text}${style.eol}`;
    return `${before}${printed(wrapped(path, value), "", style)}${style.eol}`;
  }
  const there = findNodeAtLocation(tree, [...path]);
  if (there !== undefined) {
    return splice(text, there.offset, there.length, printed(value, indentAt(text, there.offset), style));
  }
  let [parent, depth] = [tree, 0];
  for (; depth < path.length; depth += 1) {
    const child = findNodeAtLocation(parent, path.slice(depth, depth + 1));
    if (child === undefined) break;
    parent = child;
  }
  const step = path[depth];
  if (parent.type !== (typeof step === "number" ? "array" : "object")) {
    const where = depth === 0 ? "the whole" : path.slice(0, depth).join(".");
    throw new UneditableText(
      `holds no ${typeof step === "number" ? "list" : "object"} at ${where}, where a setting belongs`,
    );
  }
  return insert(text, { parent, step, value: wrapped(path.slice(depth + 1), value) }, style);
}

interface Style {
  readonly indent: string;
  readonly eol: string;
}

/** Adds a member after the last one of an object or array, behind the comments that follow it. */
function insert(
  text: string,
  { parent, step, value }: { parent: Node; step: string | number | undefined; value: unknown },
  style: Style,
): string {
  const close = parent.offset + parent.length - 1;
  const outer = indentAt(text, parent.offset);
  const last = parent.children?.at(-1);
  const beforeLast = last === undefined ? outer + style.indent : lineBefore(text, last.offset);
  const inner = beforeLast.trim() === "" ? beforeLast : outer + style.indent;
  const member = `${typeof step === "string" ? `${JSON.stringify(step)}: ` : ""}${printed(value, inner, style)}`;
  const body = text.slice(parent.offset + 1, close).trimEnd();
  const at = parent.offset + 1 + body.length;
  const end = `${style.eol}${outer}`;
  if (last === undefined) return splice(text, at, close - at, `${style.eol}${inner}${member}${end}`);
  const lastEnd = last.offset + last.length;
  const comma = commaAfter(text, lastEnd, close);
  const added = `${style.eol}${inner}${member}${comma === undefined ? "" : ","}${end}`;
  const edited = splice(text, at, close - at, added);
  return comma === undefined ? splice(edited, lastEnd, 0, ",") : edited;
}

/** Returns the place of a comma between two places of a text, outside comments. */
function commaAfter(text: string, from: number, to: number): number | undefined {
  const comments = /\/\/[^\r\n]*|\/\*[^]*?\*\//g;
  const at = text
    .slice(from, to)
    .replace(comments, (comment) => " ".repeat(comment.length))
    .indexOf(",");
  return at === -1 ? undefined : from + at;
}

function treeOf(text: string): Node | undefined {
  const errors: ParseError[] = [];
  const tree = parseTree(text.replace(byteOrderMark, " "), errors, {
    allowTrailingComma: true,
    allowEmptyContent: true,
  });
  const [error] = errors;
  if (error !== undefined) {
    const line = text.slice(0, error.offset).split("\n").length;
    throw new UneditableText(`is no JSON (${printParseErrorCode(error.error)} in line ${line}): mend it first`);
  }
  return tree;
}

function valueOf(node: Node | undefined): unknown {
  if (node?.type === "array") return (node.children ?? []).map(valueOf);
  if (node?.type !== "object") return node?.value as unknown;
  const entries = (node.children ?? []).map(({ children: [name, value] = [] }) => [
    String(name?.value),
    valueOf(value),
  ]);
  return Object.fromEntries(entries);
}

/** Returns a value within the objects and arrays that a path leads through. */
function wrapped(path: JsonPath, value: unknown): unknown {
  return path.reduceRight<unknown>((inner, step) => (typeof step === "number" ? [inner] : { [step]: inner }), value);
}

function printed(value: unknown, indent: string, style: Style): string {
  return JSON.stringify(value, null, style.indent).replaceAll("\n", `${style.eol}${indent}`);
}

/** Returns the indentation and the line ends that a text uses; two spaces for a text on one line. */
function styleOf(text: string): Style {
  return { indent: /\n([ \t]+)["{[]/.exec(text)?.[1] ?? "  ", eol: text.includes("\r\n") ? "\r\n" : "\n" };
}

/** Returns the white space at the beginning of the line that holds a place. */
function indentAt(text: string, at: number): string {
  return /^[ \t]*/.exec(lineBefore(text, at))?.[0] ?? "";
}

function lineBefore(text: string, at: number): string {
  return text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
}

function splice(text: string, at: number, length: number, added: string): string {
  return `${text.slice(0, at)}${added}${text.slice(at + length)}`;
}
