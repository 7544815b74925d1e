import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Source } from "./find-violations.ts";

/** A promise to users, and the tests that prove it. */
export interface Promised {
  /** The heading above it: a page of the project, or a list. */
  readonly section: string;
  /** On a page the beginning of a bullet; in a list a sentence, which may begin with the numbers of its rows. */
  readonly text: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

const root = join(import.meta.dirname, "../..");
const path = "test/architecture/promises.txt";

/** The headings below which each bullet of a page is a promise. */
const promising = /^## What it does|^## Promises|^## When a machine is lost|^## What is promised/;

/** Reads promises.txt: `# section`, a line for each promise, and below it an indented `file: title` for each test. */
export function readPromises(text = readFileSync(join(root, path), "utf8")): Promised[] {
  const promises: Promised[] = [];
  let section = "";
  let tests: { file: string; title: string }[] = [];
  for (const line of text.split("\n")) {
    const [, file, title] = /^ {2}(\S+): (.*)$/.exec(line) ?? [];
    if (line.startsWith("# ")) section = line.slice(2);
    else if (file !== undefined && title !== undefined) tests.push({ file, title });
    else if (line !== "") promises.push({ section, text: line, tests: (tests = []) });
  }
  return promises;
}

/** The rows of a list that have a promise, such as 17 in `fault 17: …`. */
export function rowsPromised(list: "fault" | "input", promises = readPromises()): number[] {
  return promises
    .flatMap(({ text }) => new RegExp(`^${list} ([\\d, ]+): `).exec(text)?.[1]?.split(", ") ?? [])
    .map(Number);
}

/** Returns a line for each promise without a test, each test that is not there, and each bullet without a promise. */
export function findUnproved(
  sources: readonly Source[],
  promises = readPromises(),
  pages = ["docs/promises.md", "docs/answers-that-go-on.md", "SECURITY.md"].map((page) => ({
    path: page,
    text: readFileSync(join(root, page), "utf8"),
  })),
): string[] {
  const texts = new Map(sources.map((source) => [source.path, source.text]));
  const unproved = promises.flatMap(({ text, tests }) => {
    if (tests.length === 0) return [`${path}: "${text}" has no test. Name one that proves it.`];
    return tests
      .filter(
        ({ file, title }) => !runs(texts.get(`test/${file}.test.ts`) ?? texts.get(`test/${file}.ts`) ?? "", title),
      )
      .map(({ file, title }) => `${path}: "${text}" names "${title}" in test/${file}, which is not there. ${remedy}`);
  });
  const mismatches = pages.flatMap((page) => {
    const bullets = bulletsOf(page.text);
    const begins = promises.filter(({ section }) => section === page.path).map(({ text }) => text);
    return [
      ...bullets
        .filter((bullet) => !begins.some((text) => bullet.startsWith(text)))
        .map(
          (bullet) => `${page.path}: "${bullet.slice(0, 60)}" has no line in ${path}. Name the tests that prove it.`,
        ),
      ...begins
        .filter((text) => !bullets.some((bullet) => bullet.startsWith(text)))
        .map((text) => `${path}: no promise of ${page.path} begins with "${text}".`),
    ];
  });
  return [...unproved, ...mismatches];
}

const remedy = "Name another test that proves the promise, or keep this one.";

/** True if a literal of the file is this title, and its test is neither skipped nor in a comment. */
function runs(text: string, title: string): boolean {
  return ['"', "'", "`"].some((quote) =>
    text
      .split(quote + title + quote)
      .slice(0, -1)
      .some((before) => !/(?:^|\n)[ \t]*\/\/[^\n]*$|\.(?:skip|todo)\(\s*$/.test(before)),
  );
}

/** The bullets below the headings that promise, each on one line. */
function bulletsOf(page: string): string[] {
  const sections = page.split(/^(?=##)/m).filter((section) => promising.test(section));
  return sections.flatMap((section) =>
    section
      .split(/^- /m)
      .slice(1)
      .map((bullet) => (bullet.split("\n\n")[0] ?? "").replaceAll(/\s+/g, " ").trim()),
  );
}
