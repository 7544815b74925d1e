import { findHiddenSubjects, findViolations } from "./find-violations.ts";
import { importRules } from "./import-rules.ts";
import { readSources } from "./read-sources.ts";

const sources = readSources();
const violations = [...findViolations(sources, importRules), ...findHiddenSubjects(sources)];
for (const violation of violations) console.error(violation);
console.log(`${sources.length} files, ${importRules.length} import rules, ${violations.length} violations`);
process.exitCode = violations.length === 0 ? 0 : 1;
