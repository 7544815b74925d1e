import { parseArgs } from "node:util";
import { findServers } from "../../harness/find-servers.ts";
import type { LoadLedger } from "../../harness/load/load-ledger.ts";
import { soak, violationsIn, type Soaked } from "./soak.ts";

/**
 * Streams under random faults, by a seed: `npm run soak:faults -- --streams 50000 --seed 7`. Prints what became of them
 * and ends with 1 when any of them was lied to.
 */
const { values } = parseArgs({
  options: { streams: { type: "string", default: "50000" }, seed: { type: "string", default: "7" } },
});
const [streams, seed] = [wholeNumber("streams"), wholeNumber("seed")];
console.log(`${streams} streams, seed ${seed}`);
const soaked = await soak({ streams, seed, found: await findServers(), say: (line) => console.log(line) });
console.log(tableOf(soaked));
const violations = violationsIn(soaked, streams);
for (const violation of violations) console.log(`VIOLATION: ${violation}`);
if (violations.length > 0) {
  for (const { chat, received, outcome, requestId, why } of soaked.ledger.cases) {
    console.log(JSON.stringify({ outcome, requestId, nonce: chat.nonce, tokens: chat.tokens, why, ...received }));
  }
}
process.exitCode = violations.length === 0 ? 0 : 1;

function wholeNumber(name: keyof typeof values): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${name} must be a whole number above 0`);
}

function tableOf({ ledger, faults, afterwards, tookMs }: Soaked): string {
  const kinds = new Map<string, number>();
  for (const fault of faults) {
    const [kind = ""] = fault.split(/ for | by /);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const rows: (readonly [string, number | string])[] = [
    ["streams settled", ledger.settled],
    ["exact", ledger.of("exact")],
    ...Object.entries(ledger.told),
    ["silent truncations", ledger.of("silent")],
    ["foreign bytes", ledger.of("foreign")],
    ["exact when all was over", `${afterwards.of("exact")} of ${afterwards.sent}`],
    ...timesOf(ledger),
    ["faults", faults.length],
    ...[...kinds].toSorted(([one], [other]) => one.localeCompare(other)),
    ["seconds", (tookMs / 1_000).toFixed(1)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function timesOf({ times }: LoadLedger): (readonly [string, number])[] {
  return Object.entries(times).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, Math.round(ms)] as const]));
}
