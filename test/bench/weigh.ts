import { parseSync } from "rolldown/utils";
import type { Source } from "../architecture/find-violations.ts";
import { typesDeclaredTwice } from "../architecture/repeated-types.ts";
import { readSources } from "../architecture/read-sources.ts";

/** usage: npm run weigh: counts what the sources alone tell of their weight, beside its goal. `npm run walk` tells the rest. */
const functionLinesMax = 60;
const fileLinesMax = 300;
/** The folders whose code a request may run, from its socket to its runtime. */
const onTheWay = /^services\/(?:gateway\/(?:requests|apis?|jobs|limits|keys|http|routing)|agent\/jobs)\//;

const sources = readSources();
const product = sources.filter(({ path }) => !path.startsWith("test/"));
const gateway = product.filter(({ path }) => path.startsWith("services/gateway/"));
const way = product.filter(({ path }) => onTheWay.test(path));
const tests = sources.filter(({ path }) => /^test\/(?!harness\/|bench\/)/.test(path));

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** Calls `visit` with each node of a file's syntax tree, and with the nodes around it, the nearest last. */
function eachNode({ path, text }: Source, visit: (node: Node, around: readonly Node[]) => void): void {
  const enter = (value: unknown, around: readonly Node[]): void => {
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) return value.forEach((each) => enter(each, around));
    const isNode = typeof (value as Partial<Node>).type === "string";
    if (isNode) visit(value as Node, around);
    for (const child of Object.values(value)) enter(child, isNode ? [...around, value as Node] : around);
  };
  enter(parseSync(path, text).program, []);
}

const linesOf = (text: string): number => text.split("\n").length - 1;
const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

/** Lines of a file that are neither blank nor within a comment alone. */
function codeLinesOf({ path, text: written }: Source): number {
  const { comments } = parseSync(path, written);
  const bare = comments.reduceRight(
    (text, { start, end }) => text.slice(0, start) + text.slice(start, end).replaceAll(/[^\n]/g, "") + text.slice(end),
    written,
  );
  return bare.split("\n").filter((line) => line.trim() !== "").length;
}

/** The calls of `Object.assign` on something named. A first field that is `readonly` nowhere may change. */
function assignments(source: Source): string[] {
  const found: string[] = [];
  eachNode(source, ({ type, start, end }) => {
    if (type !== "CallExpression") return;
    const [, target, field = ""] =
      /^Object\.assign\(\s*([\w.#]+),\s*(?:\{\s*(\w+))?/.exec(source.text.slice(start, end)) ?? [];
    const mayChange = field !== "" && !gateway.some(({ text }) => new RegExp(`readonly ${field}\\b`).test(text));
    if (target !== undefined && !mayChange) found.push(`${source.path}: ${target}`);
  });
  return found;
}

/** The optional members of the types named `…Listener`. */
function optionalMembers(source: Source): string[] {
  const found: string[] = [];
  eachNode(source, (node, around) => {
    if (node.type !== "TSPropertySignature" && node.type !== "TSMethodSignature") return;
    const name = around.map(({ id }) => (id as { name?: string } | null | undefined)?.name).findLast(Boolean) ?? "";
    if (node["optional"] === true && name.endsWith("Listener")) {
      found.push(`${name}.${(node["key"] as { name: string }).name}`);
    }
  });
  return found;
}

/** The functions of a file that are too long, with their lines. */
function longFunctions(source: Source): string[] {
  const found: string[] = [];
  eachNode(source, ({ type, start, end, id }, around) => {
    if (!/^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type)) return;
    const lines = linesOf(source.text.slice(start, end)) + 1;
    const named = (id ?? around.at(-1)?.["key"] ?? around.at(-1)?.["id"]) as { readonly name?: string } | undefined;
    if (lines > functionLinesMax) found.push(`${source.path}: ${named?.name ?? "(anonymous)"}, ${lines} lines`);
  });
  return found;
}

const testLines = (lane: RegExp): number =>
  sum(tests.filter(({ path }) => lane.test(path)).map(({ text }) => linesOf(text)));

interface Measure {
  readonly measure: string;
  /** A number, or the findings that are counted. */
  readonly now: number | readonly string[];
  readonly goal: number;
  readonly enough: number;
}

const measures: readonly Measure[] = [
  { measure: "code lines of services and shared", now: sum(product.map(codeLinesOf)), goal: 51_000, enough: 52_500 },
  { measure: "lines of test without harness and bench", now: testLines(/./), goal: 68_000, enough: 71_500 },
  { measure: "  unit", now: testLines(/^test\/unit\//), goal: 25_000, enough: 25_000 },
  { measure: "  integration", now: testLines(/^test\/integration\//), goal: 11_000, enough: 11_000 },
  { measure: "  faults and system", now: testLines(/^test\/(?:faults|system)\//), goal: 11_500, enough: 11_500 },
  { measure: "Object.assign on something readonly, gateway", now: gateway.flatMap(assignments), goal: 0, enough: 0 },
  { measure: "optional members of a job's listeners", now: gateway.flatMap(optionalMembers), goal: 0, enough: 0 },
  {
    measure: "type names declared in more than one file",
    now: [...typesDeclaredTwice(sources)].map(([name, paths]) => `${name}: ${paths.join(", ")}`),
    goal: 15,
    enough: 25,
  },
  {
    measure: `functions above ${functionLinesMax} lines on a request's way`,
    now: way.flatMap(longFunctions),
    goal: 0,
    enough: 0,
  },
  {
    measure: `files above ${fileLinesMax} lines on a request's way`,
    now: way
      .filter(({ text }) => linesOf(text) > fileLinesMax)
      .map(({ path, text }) => `${path}: ${linesOf(text)} lines`),
    goal: 0,
    enough: 0,
  },
];

for (const { measure, now } of measures)
  if (typeof now !== "number") for (const each of now) console.log(`${measure}: ${each}`);
console.log(`\n${"".padEnd(48)}${["now", "goal", "enough"].map((title) => title.padStart(8)).join("")}`);
for (const { measure, now, goal, enough } of measures) {
  const numbers = [typeof now === "number" ? now : now.length, goal, enough].map((each) => String(each).padStart(8));
  console.log(measure.padEnd(48) + numbers.join(""));
}
