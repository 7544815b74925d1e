import { importsOf, type Source } from "./find-violations.ts";

/** Imports that the compiler erases. */
const erased = /(?:^|\s)(?:import|export)\s+type\b[^"';]*?from\s*["'][^"']+["']/g;

/** Returns a line for each way on which the bundle of `entry` gets a package. */
export function findBundled(sources: readonly Source[], entry: string, library: string): string[] {
  const texts = new Map(sources.map(({ path, text }) => [path, text.replaceAll(erased, "")]));
  const seen = new Set<string>();
  const follow = (path: string, way: readonly string[]): string[] => {
    if (path === library) return [`${way.join(" imports ")} imports ${library}, which the bundle must not have.`];
    if (seen.has(path)) return [];
    seen.add(path);
    return importsOf(path, texts.get(path) ?? "").flatMap((next) => follow(next, [...way, path]));
  };
  return follow(entry, []);
}
