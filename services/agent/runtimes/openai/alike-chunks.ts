import { AlikeLines, type AlikeRun } from "./alike-lines.ts";

/** What no server says, to see where its words would go. */
const probe = "\ue000 probe \ue001";

interface Parts {
  readonly begin: string;
  readonly end: string;
}

/**
 * Reads the events of one answer that differ from one before them in nothing but their text, as nearly all do, without
 * parsing them: to parse takes most of what an agent does with a chunk.
 *
 * An event is told apart by its bytes alone. It is alike when it begins and ends as the one that was learnt, to the
 * letter, and has between them nothing that JSON would write otherwise. That what is between is the text of the answer and
 * nothing else was seen, by parsing the one that was learnt with other words in their place. So it says exactly what
 * parsing it would say; whatever is not alike is to be parsed.
 */
export class AlikeChunks {
  #learnt: Parts | undefined;
  #lines: AlikeLines | undefined;
  #before: Parts = { begin: "", end: "" };

  /** The text of this event, if it is alike. */
  textOf(data: string): string | undefined {
    if (this.#learnt === undefined) return undefined;
    const { begin, end } = this.#learnt;
    if (data.length < begin.length + end.length || !data.startsWith(begin) || !data.endsWith(end)) return undefined;
    const text = data.slice(begin.length, data.length - end.length);
    return standsAsItIs(text) ? text : undefined;
  }

  /** The events that are alike at the beginning of these bytes of the body, where an event may begin. */
  runIn(bytes: Uint8Array): AlikeRun | undefined {
    return this.#lines?.runIn(bytes);
  }

  /**
   * Looks at an event that was parsed and told this text and nothing else. It is learnt only if the event before was of
   * the same form as well: an answer of few words is not worth it.
   */
  learn(data: string, text: string): void {
    const parts = partsAround(data, text);
    if (parts === undefined) return;
    const isRepeated = parts.begin === this.#before.begin && parts.end === this.#before.end;
    this.#before = parts;
    if (!isRepeated || !tellsOnlyText(data, parts)) return;
    this.#learnt = parts;
    this.#lines = data.includes("\n") ? undefined : new AlikeLines(parts);
  }
}

/** Whether JSON writes this as it is: quotes, backslashes and control characters it writes otherwise, or may. */
function standsAsItIs(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x22 || code === 0x5c || (code >= 0x7f && code < 0xa0)) return false;
  }
  return true;
}

/** What stands around the text of an event, if it is written there as it is. */
function partsAround(data: string, text: string): Parts | undefined {
  if (!standsAsItIs(text)) return undefined;
  const name = data.indexOf('"content":') + '"content":'.length;
  const from = data.indexOf('"', name) + 1;
  if (from === 0 || !data.startsWith(`${text}"`, from)) return undefined;
  return { begin: data.slice(0, from), end: data.slice(from + text.length) };
}

/** Whether other words in the place of the text are the text, and change nothing else. */
function tellsOnlyText(data: string, { begin, end }: Parts): boolean {
  const expected = chunkOf(data);
  const delta = expected.choices?.[0]?.delta;
  if (delta === undefined) return false;
  delta.content = probe;
  return JSON.stringify(expected) === JSON.stringify(chunkOf(begin + probe + end));
}

function chunkOf(data: string): { choices?: { delta?: { content?: unknown } }[] } {
  return JSON.parse(data) as ReturnType<typeof chunkOf>;
}
