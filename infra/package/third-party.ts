import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const description = z.object({
  name: z.string(),
  version: z.string(),
  license: z.string(),
  author: z.union([z.string(), z.object({ name: z.string() })]).optional(),
  repository: z.union([z.string(), z.object({ url: z.string() })]).optional(),
});

/** Licences that permit to give a package away together with Trunkline, as long as their texts come with it. */
const permitted = ["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "Unlicense", "0BSD"];
const licenceFile = /^(licen[cs]e|copying|notice)|\.licen[cs]e\.txt$/i;

/** Returns the names and licences of all packages that these files are from. */
export function thirdPartyNotices(files: Iterable<string>): string {
  const folders = new Set<string>();
  for (const file of files) {
    const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file.replaceAll("\\", "/")) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  const notices = [...folders].map(noticeOf).toSorted();
  return `Trunkline comes with parts of these ${notices.length} packages, under their own licences.\n\n${notices.join("")}`;
}

function noticeOf(folder: string): string {
  const { name, version, license, author, repository } = description.parse(
    JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
  );
  if (!permitted.includes(license)) throw new Error(`${name} has the licence ${license}, which is not yet permitted`);
  const texts = readdirSync(folder)
    .filter((file) => licenceFile.test(file))
    .map((file) => readFileSync(join(folder, file), "utf8").trim());
  const place = typeof repository === "string" ? repository : repository?.url;
  const by = (typeof author === "string" ? author : author?.name) ?? `the authors at ${place}`;
  const text = texts.join("\n\n") || `${name} is by ${by}. It comes without the text of its licence.`;
  return `${"=".repeat(80)}\n${name} ${version} (${license})\n${"=".repeat(80)}\n\n${text}\n\n`;
}
