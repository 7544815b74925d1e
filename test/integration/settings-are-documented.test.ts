import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { clientVariables, settingNames } from "#shared/process/setting-names.ts";
import { gatewayConfig } from "../../services/gateway/config.ts";
import { readSources } from "../architecture/read-sources.ts";

const document = readFileSync(join(import.meta.dirname, "../../docs/settings.md"), "utf8");
const namesIn = (text: string): Set<string> => new Set(text.match(/\bTRUNKLINE_[A-Z][A-Z_]*[A-Z]\b/g));

/** Not for operators: it shrinks the times of the wire in tests. */
const forTestsOnly = ["TRUNKLINE_TIME_SCALE"];

test("every setting that the product knows is in the document of settings, and no other", () => {
  const product = readSources().filter(({ path }) => !path.startsWith("test/"));
  const known = namesIn([...settingNames, ...product.map(({ text }) => text)].join("\n")).difference(
    new Set([...forTestsOnly, ...clientVariables]),
  );
  expect(known.size).toBeGreaterThan(25);
  expect([...namesIn(document)].toSorted()).toEqual([...known].toSorted());
});

test("every setting of OpenTelemetry that a gateway honours has a row in the document of settings", () => {
  const honoured = gatewayConfig({})
    .shownSettings.map(({ name }) => name)
    .filter((name) => name.startsWith("OTEL_"));
  expect(honoured.length).toBeGreaterThan(3);
  const cells = document.split("\n").map((line) => /^\|[^|]*\|/.exec(line)?.[0] ?? "");
  expect(honoured.filter((name) => !cells.some((cell) => cell.includes(`\`${name}\``)))).toEqual([]);
});

test("every setting has one row in the document of settings", () => {
  const rows = document.split("\n").flatMap((line) => [...namesIn(/^\|[^|]*\|/.exec(line)?.[0] ?? "")]);
  expect(rows.filter((name, place) => rows.indexOf(name) !== place)).toEqual([]);
});
