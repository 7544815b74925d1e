import { dirname, join, matchesGlob, normalize } from "node:path/posix";
import type { ImportRule } from "./import-rules.ts";

/** A source file: its path from the project's root, and its text. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

const importing =
  /(?:^|[\s;])(?:import|export)\b[^"';]*?from\s*["']([^"']+)["']|(?:^|[\s;])import\s*\(?\s*["']([^"']+)["']/g;
const vagueNames = /(^|\/)(utils?|helpers?|common|misc|types|index|manager|impl)(\.ts|\/)/;

/** What the sources do that the rules forbid, a line each. */
export function findViolations(sources: readonly Source[], rules: readonly ImportRule[]): string[] {
  return sources.flatMap(({ path, text }) => [
    ...(vagueNames.test(path) ? [`${path}: its name says nothing about what it holds`] : []),
    ...importsOf(path, text).flatMap((imported) =>
      rules
        .filter((rule) => matchesGlob(path, rule.files) && matchesGlob(imported, rule.never))
        .filter((rule) => !rule.only?.some((exempt) => matchesGlob(path, exempt)))
        .map((rule) => `${path} imports ${imported}: ${rule.rule}`),
    ),
  ]);
}

/** The imports of a file: own files by their paths from the root, others by their specifiers. */
export function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(importing)].map(([, from, called]) => {
    const specifier = from ?? called ?? "";
    if (specifier.startsWith("#shared/")) return specifier.slice(1);
    return specifier.startsWith(".") ? normalize(join(dirname(path), specifier)) : specifier;
  });
}
