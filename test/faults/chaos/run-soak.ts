import { parseArgs } from "node:util";
import { findServers } from "../../harness/find-servers.ts";
import { type LoadLedger, percentile } from "../../harness/load/load-ledger.ts";
import { soak, violationsIn, type Soaked } from "./soak.ts";

/**
 * Streams under random faults, by a seed: `npm run soak:faults -- --streams 50000 --seed 7`. Beside them, clients that
 * drop their connections resume streams and repeat requests. Prints what became of all and ends with 1 when any of them
 * was lied to.
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
  const { ledger, reconnected, afterwards, reconnectedAfterwards: last } = soaked;
  const ledgers = [ledger, reconnected.resumed, reconnected.repeated, afterwards, last.resumed, last.repeated];
  for (const { chat, received, outcome, requestId, why } of ledgers.flatMap(({ cases }) => cases)) {
    console.log(JSON.stringify({ outcome, requestId, nonce: chat.nonce, tokens: chat.tokens, why, ...received }));
  }
}
process.exitCode = violations.length === 0 ? 0 : 1;

function wholeNumber(name: keyof typeof values): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${name} must be a whole number above 0`);
}

function tableOf({ ledger, reconnected, faults, afterwards, reconnectedAfterwards: last, tookMs }: Soaked): string {
  const { clients, resumed, repeated } = reconnected;
  const kinds = countsOf(faults.map((fault) => fault.split(/ for | by /)[0] ?? ""));
  const rows: (readonly [string, number | string])[] = [
    ["streams settled", ledger.settled],
    ["exact", ledger.of("exact")],
    ...Object.entries(ledger.told),
    ["continued on another machine", ledger.continued],
    ["silent truncations", ledger.of("silent")],
    ["foreign bytes", ledger.of("foreign")],
    ["exact when all was over", `${afterwards.of("exact")} of ${afterwards.sent}`],
    ...timesOf(ledger),
    ...rowsOf("resumed", resumed),
    ...rowsOf("repeated", repeated),
    ["connections dropped", clients.dropped],
    ["connections broken", clients.broken],
    ["resumptions", clients.resumedMs.length],
    ["resumptionP95Ms", Math.round(percentile(clients.resumedMs, 95) ?? 0)],
    ["replayed", clients.replayed],
    ["made anew", clients.remade],
    ...[...countsOf(clients.refusals)].map(([code, count]) => [`asked again after ${code}`, count] as const),
    ["resumed exact when all was over", `${last.resumed.of("exact")} of ${last.resumed.sent}`],
    ["repeated exact when all was over", `${last.repeated.of("exact")} of ${last.repeated.sent}`],
    ["faults", faults.length],
    ...[...kinds].toSorted(([one], [other]) => one.localeCompare(other)),
    ["seconds", (tookMs / 1_000).toFixed(1)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
}

function countsOf(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function rowsOf(kind: string, ledger: LoadLedger): (readonly [string, number])[] {
  const { settled, continued, told } = ledger;
  const counts = { settled, exact: ledger.of("exact"), continued, ...told };
  return Object.entries(counts).map(([name, count]) => [`${kind} ${name}`, count]);
}

function timesOf({ times }: LoadLedger): (readonly [string, number])[] {
  return Object.entries(times).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, Math.round(ms)] as const]));
}
