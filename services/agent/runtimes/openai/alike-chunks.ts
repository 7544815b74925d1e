import { AlikeLines, type AlikeRun } from "./alike-lines.ts";

/** A text that no server sends. It shows where the text of an event ends up. */
const probe = "\ue000 probe \ue001";

interface Parts {
  readonly begin: string;
  readonly end: string;
}

/**
 * Reads the text of most events of an answer without parsing them. Nearly all events differ from an earlier event only
 * in their text. Parsing takes most of the time that an agent spends on a chunk.
 *
 * An event is alike if it begins and ends exactly as the learnt event. The text between must need no JSON escapes.
 * `learn` proves that the part between is the text of the answer and nothing else: it parses the learnt event with a
 * probe in its place. The result is therefore exactly the result of parsing. All other events must be parsed.
 */
export class AlikeChunks {
  #learnt: Parts | undefined;
  #lines: AlikeLines | undefined;
  #before: Parts = { begin: "", end: "" };

  /** Returns the text of this event if it is alike, undefined otherwise. */
  textOf(data: string): string | undefined {
    if (this.#learnt === undefined) return undefined;
    const { begin, end } = this.#learnt;
    if (data.length < begin.length + end.length || !data.startsWith(begin) || !data.endsWith(end)) return undefined;
    const text = data.slice(begin.length, data.length - end.length);
    return standsAsItIs(text) ? text : undefined;
  }

  /** Returns the alike events at the beginning of these bytes of the body. The bytes begin where an event may begin. */
  runIn(bytes: Uint8Array): AlikeRun | undefined {
    return this.#lines?.runIn(bytes);
  }

  /**
   * Learns the form of an event that was parsed and gave only this text. Learns it only if the event before had the
   * same form: a short answer is not worth the cost.
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

/**
 * True if JSON writes this text unchanged. JSON escapes quotes, backslashes and control characters, or may escape them.
 */
function standsAsItIs(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x22 || code === 0x5c || (code >= 0x7f && code < 0xa0)) return false;
  }
  return true;
}

/** Returns the parts of an event around its text, if the text stands there without escapes. */
function partsAround(data: string, text: string): Parts | undefined {
  if (!standsAsItIs(text)) return undefined;
  const name = data.indexOf('"content":') + '"content":'.length;
  const from = data.indexOf('"', name) + 1;
  if (from === 0 || !data.startsWith(`${text}"`, from)) return undefined;
  return { begin: data.slice(0, from), end: data.slice(from + text.length) };
}

/** True if a probe in place of the text becomes the text and changes nothing else. */
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
