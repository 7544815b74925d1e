import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

interface Page {
  readonly path: string;
  readonly text: string;
}

const root = join(import.meta.dirname, "../..");

/** The pages of the project: those of its root, of `docs`, and the READMEs of other folders. */
function readPages(): readonly Page[] {
  const folders = ["", "docs/", "infra/", "infra/helm/", "test/bench/"];
  return folders
    .flatMap((folder) => readdirSync(join(root, folder)).map((name) => folder + name))
    .filter((path) => path.endsWith(".md"))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** Returns a line for each link of a page to a file, or to a heading of one, that is not there. */
export function findBrokenLinks(
  pages = readPages(),
  exists = (path: string): boolean => existsSync(join(root, path)),
): string[] {
  const headings = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));
  return pages.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]+))?\)/g)].flatMap(([link, target = "", anchor]) => {
      const file = target === "" ? path : posix.join(dirname(path), target);
      if (!exists(file)) return [`${path}: ${link} leads to ${file}, which is not there.`];
      if (anchor === undefined || headings.get(file)?.has(anchor) !== false) return [];
      return [`${path}: ${link} leads to a heading that ${file} does not have.`];
    }),
  );
}

/** The anchors that GitHub makes of the headings of a page. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}
