import type { z } from "zod";
import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import { FormFile } from "./read-form.ts";

export type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Characters shown of the name of an unknown parameter. */
const unknownCharactersMax = 100;

/** Returns the fault of the first issue that a schema has with a request. */
export function shapeFault(issues: readonly Issue[]): Fault {
  const wrong = issues.find(({ code }) => code !== "unrecognized_keys") ?? issues[0];
  if (wrong === undefined) throw new TypeError("a schema refused a request without an issue");
  return faultOf(leafOf(wrong));
}

/** One issue, with the whole path of the value that does not match. */
interface Leaf {
  readonly issue: Issue;
  readonly path: Path;
}

/**
 * Returns the most specific issue. For a value of several possible kinds, this is the first error in the kind that it
 * came closest to.
 */
function leafOf(issue: Issue, at: Path = []): Leaf {
  const path = [...at, ...issue.path];
  const [wrong] = issue.code === "invalid_union" ? closestKind(issue.errors) : [];
  return wrong === undefined ? { issue, path } : leafOf(wrong, path);
}

function closestKind(kinds: readonly (readonly Issue[])[]): readonly Issue[] {
  let closest: readonly Issue[] = [];
  let furthest = 0;
  for (const issues of kinds) {
    const its = reach(issues);
    if (its > furthest) [closest, furthest] = [issues, its];
  }
  return closest;
}

/** Returns how deep a value matches a kind: 0 when the value is not even of its type. */
function reach(issues: readonly Issue[]): number {
  const misfit = issues.some((issue) => issue.path.length === 0 && isOfOtherType(issue));
  return misfit ? 0 : issues.reduce((furthest, issue) => Math.max(furthest, 1 + issue.path.length), 1);
}

function isOfOtherType(issue: Issue): boolean {
  if (issue.code === "invalid_value") return !issue.values.some((value) => typeof value === typeof issue.input);
  return issue.code === "invalid_type" || issue.code === "invalid_union";
}

/** Returns the fault for one issue in a request's shape. */
function faultOf({ issue, path }: Leaf): Fault {
  const param = paramOf(path);
  const got = typeName(issue.input);
  const fault = (code: FaultCode, message: string): Fault => new Fault(code, { message, param });
  const wrongType = (what: string): Fault => fault("invalid_type", `Invalid type for '${param}': ${what}.`);
  const wrongValue = (allowed: readonly unknown[]): Fault =>
    fault("invalid_value", `Invalid value for '${param}': supported are ${quoted(allowed).join(", ")}.`);
  if (isMissing(issue)) return fault("missing_required_parameter", `Missing required parameter: '${param}'.`);
  switch (issue.code) {
    case "invalid_type":
      return wrongType(`expected ${expectedNames[issue.expected] ?? issue.expected}, but got ${got}`);
    case "invalid_union":
      return "options" in issue && Array.isArray(issue.options)
        ? wrongValue(issue.options.filter((option) => option !== undefined))
        : wrongType(`${got} does not fit here`);
    case "invalid_value":
      return isOfOtherType(issue)
        ? wrongType(`expected ${quoted(issue.values).join(" or ")}, but got ${got}`)
        : wrongValue(issue.values);
    case "too_small": {
      const { origin, minimum } = issue;
      if (origin === "array") return fault("empty_array", `'${param}' must hold at least ${minimum} element.`);
      if (origin === "string") return fault("invalid_value", `'${param}' must have at least ${minimum} character.`);
      const code = decimals.test(param) ? "decimal_below_min_value" : "integer_below_min_value";
      return fault(code, `'${param}' must be at least ${minimum}.`);
    }
    case "too_big": {
      const { origin, maximum } = issue;
      if (origin === "array")
        return fault("array_above_max_length", `'${param}' must hold at most ${maximum} elements.`);
      if (origin === "string") return fault("string_too_long", `'${param}' must have at most ${maximum} characters.`);
      const code = decimals.test(param) ? "decimal_above_max_value" : "integer_above_max_value";
      return fault(code, `'${param}' must be at most ${maximum}.`);
    }
    case "unrecognized_keys": {
      const name = paramOf([...path, issue.keys[0] ?? ""]).slice(0, unknownCharactersMax);
      return new Fault("unsupported_parameter", { message: `Unknown parameter: '${name}'.`, param: name });
    }
    case "custom":
      if (issue.params?.["expected"] === undefined)
        return fault("invalid_value", `Invalid value for '${param}': ${issue.message}.`);
      return wrongType(`expected ${String(issue.params["expected"])}, but got ${got}`);
    default:
      return fault("invalid_value", `Invalid value for '${param}': ${issue.message}.`);
  }
}

function quoted(values: readonly unknown[]): string[] {
  return values.map((value) => `'${String(value)}'`);
}

function isMissing(issue: Issue): boolean {
  switch (issue.code) {
    case "invalid_type":
    case "invalid_value":
      return issue.input === undefined;
    case "invalid_union":
      return issue.discriminator === undefined
        ? issue.input === undefined
        : Reflect.get(Object(issue.input), issue.discriminator) === undefined;
    case "custom":
      return issue.params?.["expected"] !== undefined && issue.input === undefined;
    default:
      return false;
  }
}

/** Fields that take decimals, by name: JSON does not distinguish 2 from 2.0. */
const decimals = /^(temperature|speed|top_p|min_p|typical_p|\w+_penalty|logit_bias\..*)$/;

const expectedNames: Readonly<Record<string, string>> = {
  int: "an integer",
  number: "a number",
  string: "a string",
  boolean: "a boolean",
  array: "an array",
  object: "an object",
  record: "an object",
};

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (value instanceof FormFile) return "a file";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Characters shown of one name and of a whole path. Names come from the client, and may be as long as a body. */
export const nameCharactersMax = 64;
export const paramCharactersMax = 512;

/** Returns a path as OpenAI writes it: `messages[2].content[0].type`. A path or name that is too long is cut. */
export function paramOf(path: Path): string {
  return path.reduce<string>(within, "");
}

function within(holder: string, step: PropertyKey): string {
  if (holder.length > paramCharactersMax) return holder;
  const dot = holder === "" ? "" : ".";
  const param = holder + (typeof step === "number" ? `[${step}]` : dot + shown(String(step)));
  return param.length > paramCharactersMax ? `${param.slice(0, paramCharactersMax)}…` : param;
}

/**
 * Returns a name that is safe to show: invisible characters, and those that turn the text around them, are replaced.
 */
function shown(name: string): string {
  const cut = name.length > nameCharactersMax ? `${name.slice(0, nameCharactersMax)}…` : name;
  return /^[\x20-\x7e]*$/.test(cut) ? cut : cut.toWellFormed().replace(/\p{C}|\p{Zl}|\p{Zp}/gu, "\ufffd");
}
