import { bookLimitRows, type BookLimit, termText, type TermValue } from "../admin/key-terms.ts";
import { Fault } from "../fault/fault.ts";
import { dayMs } from "../process/clock.ts";
import { countText, formatDuration } from "../process/quantities.ts";
import type { KeyRecord } from "./key-record.ts";
import { allows } from "./match-scope.ts";
import { showLimits } from "./book-limits.ts";
import type { TeamRecord } from "./team-record.ts";

/** The terms that a member gives for a key of their own. What is left out is as the team has it. */
export type OwnKeyWish = {
  readonly ttl?: number | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly machines?: readonly string[] | null | undefined;
} & { readonly [Name in BookLimit]?: TermValue<Name> | null | undefined };

/** Returns the terms of a member's new key. Throws the fault that names the bound of the team for a term beyond it. */
export function termsWithin(team: TeamRecord, wish: OwnKeyWish) {
  const beyond = (param: string, bound: string): Fault => {
    const message = `Invalid value for '${param}': for a key of the team ${team.name} it is ${bound}.`;
    return new Fault("invalid_value", { message, param });
  };
  const { ttl: ttlMs = team.own.days * dayMs, scopes = team.scopes } = wish;
  const machines = wish.machines ?? team.machines;
  if (ttlMs > team.own.days * dayMs) throw beyond("ttl", `${formatDuration(team.own.days * dayMs)} at most`);
  if (!scopes.every((each) => allows(team.scopes, each))) throw beyond("scopes", `only ${team.scopes.join(", ")}`);
  if (!(machines ?? []).every((each) => team.machines?.includes(each) ?? true))
    throw beyond("machines", `only ${team.machines?.join(", ")}`);
  const bounds = showLimits(team.own.limits);
  const limits = bookLimitRows.map(([name, row]) => {
    const [bound, wished] = [bounds[name], wish[name]];
    if (!isWithin(wished, bound)) throw beyond(name, `${termText([name, row], bounds, countText)} at most`);
    return [row.stored, wished ?? bound ?? undefined];
  });
  return { ttlMs, scopes, machines, limits: Object.fromEntries(limits) as KeyRecord["limits"] };
}

type Limit = number | { readonly per: string } | null | undefined;

/** True for a limit that is no more than its bound. One of another period is not compared, and so is beyond. */
function isWithin(wished: Limit, bound: Limit): boolean {
  if (wished === null || wished === undefined || bound === null || bound === undefined) return true;
  if (typeof wished === "number" || typeof bound === "number") return Number(wished) <= Number(bound);
  return wished.per === bound.per && amountOf(wished) <= amountOf(bound);
}

/** Returns the tokens of a budget, or its money. */
export function amountOf(budget: object): number {
  return Object.values(budget).find((value) => typeof value === "number") ?? 0;
}
