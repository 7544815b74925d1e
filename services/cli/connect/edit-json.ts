import { isDeepStrictEqual } from "node:util";
import {
  applyEdits,
  findNodeAtLocation,
  modify,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";
import type { JsonPath } from "#shared/protocol/frame-payload.ts";

/** A text that cannot be edited, in words that follow the name of its file. */
export class UneditableText extends Error {
  override readonly name = "UneditableText";
}

const byteOrderMark = "\uFEFF";

/** Returns the value of a JSON text with comments. Undefined for a text without any value. */
export function readJson(text: string): unknown {
  return valueOf(treeOf(text));
}

/**
 * Sets one value in a JSON text with comments and trailing commas. Missing objects and arrays on the way are made. A new
 * member comes last, but first where a comment follows the last one on its line: it would stand behind the new one.
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
  let parent = tree;
  for (const [depth, step] of path.entries()) {
    const around = tree && findNodeAtLocation(tree, path.slice(0, depth));
    if (around === undefined) break;
    parent = around;
    const isList = typeof step === "number";
    if (parent.type === (isList ? "array" : "object")) continue;
    const where = depth === 0 ? "the whole" : path.slice(0, depth).join(".");
    throw new UneditableText(`holds no ${isList ? "list" : "object"} at ${where}, where a setting belongs`);
  }
  const last = parent?.children?.at(-1);
  const isCommented = last !== undefined && /^,?[ \t]*\/[/*]/.test(text.slice(last.offset + last.length));
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const indent = /\n([ \t]+)["{[]/.exec(text)?.[1] ?? "  ";
  const own = tree === undefined ? "" : text;
  const edits = modify(own, [...path], value, {
    formattingOptions: { insertSpaces: !indent.startsWith("\t"), tabSize: indent.length, eol },
    getInsertionIndex: ({ length }) => (isCommented ? 0 : length),
  });
  const edited = applyEdits(own, edits);
  return tree === undefined ? `${text && text.trimEnd() + eol}${edited}${eol}` : edited;
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
