import { diff, isDeepStrictEqual } from "node:util";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { JsonPath } from "#shared/protocol/frame-payload.ts";
import { type Client, type FileChange, jsonText, type Setting, type SiteFacts } from "./client.ts";
import { readJson, setJson, UneditableText } from "./edit-json.ts";

/** A file as a client's configuration needs it. */
export interface PlannedFile {
  readonly file: string;
  /** Undefined when there is no such file yet. */
  readonly before: string | undefined;
  readonly after: string;
  readonly holdsKey: boolean;
  /** The settings of the user's own that the plan replaces; the name of the file itself for a whole one. */
  readonly overwrites: readonly string[];
}

/** Returns the files that connect a client with a site. `read` returns the text of a file, if there is one. */
export function planConnection(
  client: Client,
  facts: SiteFacts,
  read: (file: string) => string | undefined,
): readonly PlannedFile[] {
  return client.files(facts).map((change) => {
    const before = read(change.file);
    try {
      const holdsKey = JSON.stringify(change).includes(facts.key);
      return { file: change.file, before, ...applied(change, before), holdsKey };
    } catch (error) {
      if (!(error instanceof UneditableText)) throw error;
      throw new StartFailure(exitCodes.config, `${change.file} ${error.message}.`, { cause: error });
    }
  });
}

type Applied = Pick<PlannedFile, "after" | "overwrites">;

function applied(change: FileChange, before: string | undefined): Applied {
  if (change.kind === "settings") {
    const { beginning, settings } = change;
    return withSettings(before ?? (beginning === undefined ? "" : jsonText(beginning)), settings);
  }
  const isOther = before !== undefined && before !== change.text;
  return { after: change.text, overwrites: isOther ? ["the whole file"] : [] };
}

function withSettings(before: string, settings: readonly Setting[]): Applied {
  const overwrites: string[] = [];
  let text = before;
  for (const setting of settings) {
    const { path, value, givesWay } = setting;
    const { place, found } = locate(readJson(text), setting);
    if (isDeepStrictEqual(found, value)) continue;
    if (found !== undefined && givesWay) continue;
    if (found !== undefined) overwrites.push(path.join("."));
    text = setJson(text, place, value);
  }
  return { after: text, overwrites };
}

/** Finds a setting in a value. An element that a list lacks has the place behind its last one. */
function locate(root: unknown, { path, element }: Setting): { readonly place: JsonPath; readonly found: unknown } {
  const at = path.reduce<unknown>((around, name) => (isRecord(around) ? around[name] : undefined), root);
  if (element === undefined) return { place: path, found: at };
  const list: readonly unknown[] = Array.isArray(at) ? at : [];
  const fields = Object.entries(element);
  const index = list.findIndex((each) => isRecord(each) && fields.every(([name, is]) => each[name] === is));
  return { place: [...path, index === -1 ? list.length : index], found: list[index] };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The lines that are shown around a change. */
const contextLines = 2;

/** Returns the difference of two texts, with some lines around each change. An empty text for equal ones. */
export function showDiff(before: string, after: string): string {
  const lines = diff(split(before), split(after));
  const isNear = lines.map(() => false);
  lines.forEach(([change], at) => {
    if (change !== 0) isNear.fill(true, Math.max(0, at - contextLines), at + contextLines + 1);
  });
  let shown = "";
  let hasGap = false;
  lines.forEach(([change, text], at) => {
    // `util.diff` marks with 1 a line that only its first text has.
    const sign = change === 0 ? " " : change === 1 ? "-" : "+";
    if (isNear[at]) shown += `${hasGap && shown !== "" ? "  …\n" : ""}${sign} ${text}\n`;
    hasGap = !isNear[at];
  });
  return shown;
}

/** A text with a last line end has as many lines as line ends. */
function split(text: string): string[] {
  if (text === "") return [];
  return text.replace(/\r?\n$/, "").split(/\r?\n/);
}
