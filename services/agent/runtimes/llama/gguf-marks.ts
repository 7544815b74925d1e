import type { CallSyntax } from "./gguf-call-syntax.ts";
import type { GgufTemplate } from "./gguf-template.ts";

/** A text by which a model announces a thought, an answer or a call. */
export interface Mark {
  readonly text: string;
  /** The kind of text after the mark; `same` keeps the kind of before. The mark itself is not sent to a client. */
  readonly opens: "thought" | "answer" | "call" | "same";
}

const channels: readonly Mark[] = [
  { text: "<|channel|>analysis<|message|>", opens: "thought" },
  { text: "<|channel|>final<|message|>", opens: "answer" },
  { text: "<|channel|>commentary<|message|>", opens: "answer" },
  { text: "<|channel|>commentary", opens: "answer" },
  { text: "<|start|>assistant", opens: "same" },
  { text: "<|end|>", opens: "answer" },
];

/** Returns the marks in a model's answers. Marks of calls are included only if the model may call tools. */
export function answerMarks(
  template: Pick<GgufTemplate, "thoughts" | "onChannels">,
  calls: CallSyntax | undefined,
): Mark[] {
  const marks: Mark[] = template.onChannels ? [...channels] : [];
  if (template.thoughts !== undefined) {
    marks.push({ text: template.thoughts.open, opens: "thought" }, { text: template.thoughts.close, opens: "answer" });
  }
  for (const text of new Set([calls?.begin, calls?.again])) if (text) marks.push({ text, opens: "call" });
  return marks;
}

/** Returns the marks that end a call. Before the first call they are ordinary text. */
export function endMarks(calls: CallSyntax | undefined): Mark[] {
  return (calls?.ends ?? []).map((text) => ({ text, opens: "same" }));
}

/**
 * Finds the first mark in a text, and the longest if several begin there. Without a mark, `upTo` is the length of text
 * that can be sent because no mark can begin in it any more.
 */
export function findMark(
  text: string,
  marks: readonly Mark[],
  isLast: boolean,
): { readonly upTo: number; readonly mark: Mark | undefined } {
  const longest = Math.max(0, ...marks.map((mark) => mark.text.length));
  for (let at = 0; at < text.length; at++) {
    const rest = text.slice(at, at + longest);
    if (!isLast && marks.some((mark) => mark.text.length > rest.length && mark.text.startsWith(rest))) {
      return { upTo: at, mark: undefined };
    }
    const found = marks.filter((mark) => rest.startsWith(mark.text)).sort((a, b) => b.text.length - a.text.length)[0];
    if (found !== undefined) return { upTo: at, mark: found };
  }
  return { upTo: text.length, mark: undefined };
}
