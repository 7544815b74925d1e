import type { Source } from "./find-violations.ts";

/** Names of types that more than one file declares, each with its reason. Any other name means one type of the project. */
export const repeatedTypes: Readonly<Record<string, string>> = {
  Dependencies: "the parts that a file's one class or function is made from; no other file sees it",
  Options: "the options of a command of the command line; no other file sees it",
};

/** Returns the names of types that more than one product file declares, with their files. */
export function typesDeclaredTwice(sources: readonly Source[]): Map<string, readonly string[]> {
  const files = new Map<string, Set<string>>();
  for (const { path, text } of sources) {
    if (path.startsWith("test/")) continue;
    for (const [, name = ""] of text.matchAll(/^(?:export )?(?:declare )?(?:interface|type) (\w+)/gm)) {
      files.set(name, (files.get(name) ?? new Set()).add(path));
    }
  }
  return new Map([...files].filter(([, { size }]) => size > 1).map(([name, paths]) => [name, [...paths].toSorted()]));
}

/** Returns a line for each name of several types that has no reason, and for each reason that is not needed any more. */
export function findRepeatedTypes(sources: readonly Source[], allowed = repeatedTypes): string[] {
  const found = typesDeclaredTwice(sources);
  const unexplained = [...found].filter(([name]) => !Object.hasOwn(allowed, name));
  return [
    ...unexplained.map(
      ([name, paths]) =>
        `${paths.join(", ")} each declare a type ${name}. Share it if it is one type, or rename one of them; else say why in repeatedTypes of test/architecture/repeated-types.ts.`,
    ),
    ...Object.keys(allowed)
      .filter((name) => !found.has(name))
      .map((name) => `The type ${name} has one declaration at most: remove it from repeatedTypes.`),
  ];
}
