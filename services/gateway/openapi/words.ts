import { readOwnFile } from "#shared/process/own-files.ts";

/** The meaning of a name that the document has, and an example of its value: a number, or a text in backquotes. */
export interface Words {
  readonly name: string;
  readonly example: string | undefined;
  readonly meaning: string;
}

const sections = readOwnFile(new URL("./words.md", import.meta.url))
  .toString()
  .split("\n## ")
  .map(readSection);

function readSection(text: string) {
  const lines = text.matchAll(/^- `(.+?)`(?: \((.+?)\))?: (.+)$/gm);
  const words = [...lines].map(([, name = "", example, meaning = ""]): Words => ({ name, example, meaning }));
  return { title: text.slice(0, text.indexOf("\n")), words };
}

/** Returns the lines of the sections of words.md whose titles begin so. */
export function wordsOf(title: string): readonly Words[] {
  return sections.filter((each) => each.title.startsWith(title)).flatMap(({ words }) => words);
}

/** Returns the line of a name in a section of words.md. */
export function wordsFor(title: string, name: string): Words {
  const words = wordsOf(title).find((each) => each.name === name);
  if (words === undefined) throw new Error(`words.md has no line for ${name} in its section ${title}.`);
  return words;
}
