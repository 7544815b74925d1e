import { parseSync } from "rolldown/utils";
import { analyse } from "scslre";
import type { Source } from "./find-violations.ts";

/** An expression that is made at run time, or one that grows faster than its input, with the bound of that input. */
export interface BoundedExpression {
  readonly path: string;
  /** The source text of the expression begins so. */
  readonly expression: string;
  readonly bound: string;
}

const fixed = "its parts are constants of the file, and each repeats one class of characters";

export const boundedExpressions: readonly BoundedExpression[] = [
  { path: "shared/protocol/pairing.ts", expression: "new RegExp(`^[\\\\w-]{$", bound: fixed },
  { path: "shared/protocol/subjects.ts", expression: "new RegExp(", bound: fixed },
  { path: "services/gateway/tunnels/protocol-parser.ts", expression: "new RegExp(", bound: fixed },
  { path: "services/gateway/apis/responses/stored-turns.ts", expression: "new RegExp(", bound: fixed },
  { path: "services/gateway/chats/steady-prompt.ts", expression: "new RegExp(`^${billingName}", bound: fixed },
  {
    path: "services/gateway/chats/runtime-fields.ts",
    expression: "new RegExp(`^${field}",
    bound: "`field` is a name of a job's body, and the input is a fault's param",
  },
  {
    path: "services/agent/runtimes/scripted/scripted-answer.ts",
    expression: "new RegExp(`^(?:/script",
    bound: fixed,
  },
  {
    path: "services/agent/runtimes/ollama/ollama-catalogue.ts",
    expression: "new RegExp(`^${name}",
    bound: "`name` is a constant of the caller, and the input is a model's list of parameters",
  },
  {
    path: "services/agent/runtimes/llama/gguf-file.ts",
    expression: "new RegExp(controlTexts",
    bound: "it is a choice of whole tokens, without a quantifier",
  },
  {
    path: "services/agent/models/model-set.ts",
    expression: "new RegExp(`^${pieces",
    bound: "the pattern is the operator's own, and the input is a model's id",
  },
];

/** Returns a line for each regular expression of the product whose time may grow faster than its input. */
export function findSlowExpressions(sources: readonly Source[], bounded = boundedExpressions): string[] {
  const used = new Set<BoundedExpression>();
  const slow = sources
    .filter(({ path }) => /^(?:services|shared)\//.test(path))
    .flatMap(({ path, text }) =>
      expressionsIn(path, text).flatMap(({ written, why }) => {
        const exception = bounded.find((each) => each.path === path && written.startsWith(each.expression));
        if (exception !== undefined) used.add(exception);
        return exception === undefined ? [`${path}: ${written.slice(0, 80)} ${why}. ${remedy}`] : [];
      }),
    );
  const unused = bounded.filter((each) => !used.has(each) && sources.some(({ path }) => path === each.path));
  return [...slow, ...unused.map(({ path, expression }) => `${path} no longer holds ${expression}: remove its bound`)];
}

const remedy =
  "Write it so that each character is looked at a bounded number of times, or name the bound of its input in test/architecture/slow-expressions.ts";

interface Expression {
  readonly written: string;
  readonly why: string;
}

/** Returns the expressions of a file that are slow, and those that only run time knows. */
function expressionsIn(path: string, text: string): Expression[] {
  if (!text.includes("RegExp") && !text.includes("/")) return [];
  const found: Expression[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) return node.forEach(visit);
    const { type, regex, callee, start, end } = node as Partial<SyntaxNode>;
    const written = text.slice(start, end);
    if (type === "Literal" && regex !== undefined) {
      const { reports } = analyse({ source: regex.pattern, flags: regex.flags });
      const [first] = reports;
      if (first !== undefined) found.push({ written, why: `grows faster than a run of '${first.character.pick}'` });
    }
    const isMade = (type === "NewExpression" || type === "CallExpression") && callee?.name === "RegExp";
    if (isMade) found.push({ written, why: "is made at run time" });
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseSync(path, text).program);
  return found;
}

/** The parts of a syntax tree's nodes that matter here. */
interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly regex?: { readonly pattern: string; readonly flags: string };
  readonly callee?: { readonly name?: string };
}
