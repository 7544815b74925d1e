import { jsonSpan } from "./json-span.ts";

/** A message in the form that a chat template takes. */
export type TemplateMessage = Readonly<Record<string, unknown>>;

/** The syntax in which a model writes a tool call. */
export interface CallSyntax {
  /** The text before a call; empty if a call has no mark. */
  readonly begin: string;
  /** The text before each further call of an answer; undefined if an answer has only one call. */
  readonly again: string | undefined;
  /** The text after each call and the text after the last call, without empty texts. */
  readonly ends: readonly string[];
  /** `json`: the whole call is JSON with these keys. `named`: the name, the text `between`, the arguments as JSON. */
  readonly form:
    | { readonly kind: "json"; readonly nameKey: string; readonly argumentsKey: string; readonly inArray: boolean }
    | { readonly kind: "named"; readonly between: string };
  /** The form of earlier calls' arguments that the template expects: an object or JSON text. */
  readonly argumentsAs: "object" | "text";
}

type Render = (messages: readonly TemplateMessage[]) => string;

const name = "probe_name";
const secondName = "other_name";
const argumentsJson = /\{\s*"probe_key"\s*:\s*"probe_value"\s*\}/;
const question = { role: "user", content: "Q7Z" };

/**
 * Learns from a chat template how its model calls tools. Renders a plain answer and an answer with a call: the text in
 * which they differ is the call. Returns undefined if the template has no calls, or writes arguments that are not JSON.
 */
export function learnCallSyntax(render: Render): CallSyntax | undefined {
  for (const argumentsAs of ["object", "text"] as const) {
    const written = callsWritten(render, argumentsAs, [name]);
    const first = written === undefined ? undefined : callIn(written, name);
    if (written !== undefined && first !== undefined) return { ...syntaxOf(written, first, render, argumentsAs) };
  }
  return undefined;
}

interface WrittenCall {
  readonly start: number;
  readonly end: number;
  readonly form: CallSyntax["form"];
}

function syntaxOf(
  written: string,
  first: WrittenCall,
  render: Render,
  argumentsAs: CallSyntax["argumentsAs"],
): CallSyntax {
  const begin = written.slice(0, first.start).trim();
  const after = written.slice(first.end);
  const alone = { begin, again: undefined, ends: notEmpty([after]), form: first.form, argumentsAs };
  const two = callsWritten(render, argumentsAs, [name, secondName]);
  if (two === undefined || !two.includes(secondName)) return alone;
  if (first.form.kind === "json" && first.form.inArray) return { ...alone, again: begin };
  const firstOfTwo = callIn(two, name);
  const second = callIn(two, secondName, firstOfTwo?.end);
  if (firstOfTwo === undefined || second === undefined) return alone;
  const middle = two.slice(firstOfTwo.end, second.start);
  const shared = beforeOpenTag(middle, sharedStart(middle, after));
  return {
    ...alone,
    again: middle.slice(shared).trim(),
    ends: notEmpty([after.slice(0, shared), after.slice(shared)]),
  };
}

/** Returns the text that the template writes for calls in place of a plain answer. */
function callsWritten(
  render: Render,
  argumentsAs: CallSyntax["argumentsAs"],
  names: readonly string[],
): string | undefined {
  const given = { probe_key: "probe_value" };
  const calls = names.map((called, at) => ({
    id: `call0000${at}`,
    type: "function",
    function: { name: called, arguments: argumentsAs === "object" ? given : JSON.stringify(given) },
  }));
  try {
    const plain = render([question, { role: "assistant", content: "A7Z" }]);
    const calling = render([question, { role: "assistant", content: "", tool_calls: calls }]);
    const start = sharedStart(plain, calling);
    const end = sharedStart(reversed(plain.slice(start)), reversed(calling.slice(start)));
    return calling.slice(start, calling.length - end);
  } catch {
    return undefined;
  }
}

function callIn(written: string, called: string, from = 0): WrittenCall | undefined {
  const found = argumentsJson.exec(written.slice(from));
  const nameAt = written.indexOf(called, from);
  if (found === null || nameAt < 0) return undefined;
  const argumentsAt = from + found.index;
  for (let at = from; at < argumentsAt; at++) {
    const form = jsonForm(written, at, called);
    if (form !== undefined) return form;
  }
  if (nameAt > argumentsAt) return undefined;
  const between = written.slice(nameAt + called.length, argumentsAt);
  return { start: nameAt, end: argumentsAt + found[0].length, form: { kind: "named", between } };
}

function jsonForm(written: string, start: number, called: string): WrittenCall | undefined {
  if (written[start] !== "{" && written[start] !== "[") return undefined;
  const end = jsonSpan(written, start);
  if (end === undefined) return undefined;
  const value = parsed(written.slice(start, end));
  const object: unknown = Array.isArray(value) ? value[0] : value;
  if (typeof object !== "object" || object === null) return undefined;
  const entries = Object.entries(object);
  const nameKey = entries.find(([, each]) => each === called)?.[0];
  const argumentsKey = entries.find(([, each]) => argumentsJson.test(JSON.stringify(each)))?.[0];
  if (nameKey === undefined || argumentsKey === undefined || typeof object[argumentsKey as keyof object] === "string") {
    return undefined;
  }
  return { start, end, form: { kind: "json", nameKey, argumentsKey, inArray: Array.isArray(value) } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sharedStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

/** Returns the index of an unclosed `<` before `at`, or `at`: tags that only begin alike are not shared text. */
function beforeOpenTag(text: string, at: number): number {
  const open = text.lastIndexOf("<", at - 1);
  return open >= 0 && !text.slice(open, at).includes(">") ? open : at;
}

function reversed(text: string): string {
  return text.split("").toReversed().join("");
}

function notEmpty(texts: readonly string[]): string[] {
  return texts.map((text) => text.trim()).filter((text) => text !== "");
}
