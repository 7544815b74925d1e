import { findBrokenLinks } from "./find-broken-links.ts";
import { findBundled } from "./find-bundled.ts";
import { findCircles } from "./find-circles.ts";
import { findHiddenSubjects, findHiddenTitles, findViolations } from "./find-violations.ts";
import { importRules } from "./import-rules.ts";
import { findLongFolders, linesOf, setBudgets } from "./line-budgets.ts";
import { findUnproved } from "./promises.ts";
import { findRepeatedTypes } from "./repeated-types.ts";
import { findSlowExpressions } from "./slow-expressions.ts";
import { readSources } from "./read-sources.ts";

/** usage: node test/architecture/check-imports.ts [--set-budgets [slack in percent, 5 unless given]] */
const sources = readSources();
const [option, slack = "5"] = process.argv.slice(2);
if (option === "--set-budgets") {
  setBudgets(sources, Number(slack));
  console.log(
    `Every line budget is today's lines and ${slack} %: see lineBudgets in test/architecture/import-rules.ts.`,
  );
} else {
  const violations = [
    ...findViolations(sources, importRules),
    ...findCircles(sources),
    ...findBundled(sources, "services/console/main.tsx", "zod"),
    ...findBundled(sources, "services/console/members.tsx", "zod"),
    ...findHiddenSubjects(sources),
    ...findHiddenTitles(sources),
    ...findLongFolders(sources),
    ...findSlowExpressions(sources),
    ...findUnproved(sources),
    ...findRepeatedTypes(sources),
    ...findBrokenLinks(),
  ];
  for (const violation of violations) console.error(violation);
  const lines = [...linesOf(sources).values()].reduce((sum, each) => sum + each, 0);
  console.log(
    `${sources.length} files, ${lines} lines in services and shared, ${importRules.length} import rules, ${violations.length} violations`,
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
}
