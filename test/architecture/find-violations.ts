import { dirname, join, matchesGlob, normalize } from "node:path/posix";
import type { ImportRule } from "./import-rules.ts";

/** A source file: its path from the project's root, and its text. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

const importing =
  /(?:^|[\s;])(?:import|export)\b[^"';]*?from\s*["']([^"']+)["']|(?:^|[\s;])import\s*\(?\s*["']([^"']+)["']|import\.meta\.resolve\(["']([^"']+)["']/g;
/** The beginnings of comments that hide their subject: a reader has to guess which thing is meant. */
const hiddenSubjects =
  /^[ \t]*(?:\/\*\*|\/\/|\*)[ \t]+((?:What|Who|Whoever|Whom|Whose|Nobody|Such|So that|Of (?:a|an|the|all|those))\b)/;
/** Titles of tests that hide their subject. "whose" is allowed: it goes on with the subject of a `describe`. */
const hiddenTitles =
  /(?:^|[\s;])(?:test|it|describe)(?:\.[\w.]+)?(?:\((?:[^"'`()]|\([^()]*\))*\))*\(\s*["'`]((?:what|who|whoever|whom|nobody)\b[^"'`]*)/gi;
/** A line of a comment that holds text and does not end the comment: the next line may go on with any word. */
const commentText = /^[ \t]*(?:\/\*\*|\/\/|\*)[ \t]+(?!.*\*\/[ \t]*$)\S/;
const vagueNames = /(^|\/)(utils?|helpers?|common|misc|types|index|manager|impl)(\.ts|\/)/;

/** Returns a line for each import that the rules forbid, with the nearest legal place, and for each vague file name. */
export function findViolations(sources: readonly Source[], rules: readonly ImportRule[]): string[] {
  return sources.flatMap(({ path, text }) => [
    ...(vagueNames.test(path) ? [`${path}: its name says nothing about what it holds`] : []),
    ...importsOf(path, text).flatMap((imported) =>
      rules
        .filter((rule) => matchesGlob(path, rule.files) && matchesGlob(imported, rule.never))
        .filter((rule) => !rule.only?.some((exempt) => matchesGlob(path, exempt)))
        .map((rule) => `${path} imports ${imported}: ${rule.rule}. Instead, ${legalPlace(rule)}.`),
    ),
  ]);
}

/** Returns the remedy for a violation: the files that may import it, or the rule's own. */
function legalPlace({ only, instead }: ImportRule): string {
  return instead ?? `use what these files export, the only ones that may import it: ${only.join(", ")}`;
}

/** Returns a line for each comment of the product whose first word hides its subject. */
export function findHiddenSubjects(sources: readonly Source[]): string[] {
  return sources
    .filter(({ path }) => !path.startsWith("test/"))
    .flatMap(({ path, text }) => {
      const lines = text.split("\n");
      return lines.flatMap((line, at) => {
        const [, begin] = hiddenSubjects.exec(line) ?? [];
        const goesOn = commentText.test(lines[at - 1] ?? "") && !/^[ \t]*\/\*\*/.test(line);
        if (begin === undefined || goesOn) return [];
        return [`${path}:${at + 1}: the comment begins with "${begin}"; begin it with its subject`];
      });
    });
}

/** Returns a line for each test whose title begins with a word that hides its subject. */
export function findHiddenTitles(sources: readonly Source[]): string[] {
  const tests = sources.filter(({ path }) => path.endsWith(".test.ts"));
  return tests.flatMap(({ path, text }) =>
    [...text.matchAll(hiddenTitles)].map(([, title]) => `${path}: begin the title "${title}" with its subject`),
  );
}

/** The imports of a file: own files by their paths from the root, others by their specifiers. */
export function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(importing)].map(([, from, called, resolved]) => {
    const specifier = from ?? called ?? resolved ?? "";
    if (specifier.startsWith("#shared/")) return specifier.slice(1);
    return specifier.startsWith(".") ? normalize(join(dirname(path), specifier)) : specifier;
  });
}
