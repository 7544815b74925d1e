import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readSources } from "../architecture/read-sources.ts";

const document = readFileSync(join(import.meta.dirname, "../../infra/settings.md"), "utf8");
const namesIn = (text: string): Set<string> => new Set(text.match(/\bTRUNKLINE_[A-Z][A-Z_]*[A-Z]\b/g));

/** Not for operators: it shrinks the times of the wire in tests. */
const forTestsOnly = new Set(["TRUNKLINE_TIME_SCALE"]);

test("every setting that the product knows is in the document of settings, and no other", () => {
  const product = readSources().filter(({ path }) => !path.startsWith("test/"));
  const known = namesIn(product.map(({ text }) => text).join("\n")).difference(forTestsOnly);
  expect(known.size).toBeGreaterThan(25);
  expect([...namesIn(document)].toSorted()).toEqual([...known].toSorted());
});
