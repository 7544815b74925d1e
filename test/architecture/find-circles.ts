import { importsOf, type Source } from "./find-violations.ts";

/** Returns a line for each group of product files that import each other in a circle, types included. */
export function findCircles(sources: readonly Source[]): string[] {
  const product = new Map(sources.filter(({ path }) => !path.startsWith("test/")).map((each) => [each.path, each]));
  const imports = new Map(
    [...product].map(([path, { text }]) => [path, importsOf(path, text).filter((each) => product.has(each))]),
  );
  const reached = new Map([...product.keys()].map((path) => [path, reachedFrom(path, imports)]));
  const groups = [...reached]
    .filter(([path, others]) => others.has(path))
    .map(([path, others]) => [...others].filter((other) => reached.get(other)?.has(path)).toSorted());
  const named = new Set(groups.map((group) => group.join(", ")));
  return [...named].map(
    (group) =>
      `${group} import each other in a circle. Move what both need to the lower file, or to one below both; a type can be declared by the file that needs it.`,
  );
}

function reachedFrom(path: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [path];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const imported of imports.get(next) ?? []) {
      if (reached.has(imported)) continue;
      reached.add(imported);
      open.push(imported);
    }
  }
  return reached;
}
