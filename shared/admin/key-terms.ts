import { amountText } from "../money/money.ts";

/**
 * The terms of a key that its issuer sets. The stored record, the admin API, the command line and the console all take them
 * from here, so that a new term is one row. The browser loads this file: it imports no schema.
 */
interface Row {
  /** The name in the record of a key. The record has limits, which are terms with a unit, in its `limits`. */
  readonly stored: string;
  /** The name at a form. */
  readonly title: string;
  /** The description for the admin API and the command line: of a mark, the effect of setting it. */
  readonly words: string;
  /** The option of the command line, if it is not the name of the term. */
  readonly option?: string;
  /** The name in lists of the command line, if it is not the name of the term. */
  readonly label?: string;
  /** The first version whose gateways read the term. Those of 0.2.0 read the terms without one. */
  readonly since?: string;
  /** The term without which this one means nothing. */
  readonly needs?: "end_users";
}

export type TermRow = Row &
  (
    | {
        readonly kind: "machines" | "count" | "budget" | "money" | "choice";
        /** The word for a key without the term; "none" if absent. */
        readonly without?: string;
        /** True if answers leave it out for a key without the term. They say null for others of these kinds. */
        readonly leftOut?: true;
        readonly unit?: string;
        /** A value as the command line takes it. */
        readonly example?: string;
        /** The bounds of a count. Without `min` it is at least 1. */
        readonly min?: number;
        readonly max?: number;
        /** The values of a choice. */
        readonly choices?: readonly string[];
        /** The word for a count of 0, and the words behind other values. */
        readonly zero?: string;
        readonly per?: string;
      }
    | {
        readonly kind: "mark";
        /** The value of a key without the mark. */
        readonly usual: boolean;
        /** The option of the command line that takes the mark away. */
        readonly back: string;
        /** The word for a key with the mark. */
        readonly text: string;
      }
  );

/** The loads a minute of a key without a limit for them, on machines whose agent decides what is loaded. */
export const loadsPerMinuteDefault = 6;

/** The common part of the terms for each end user. */
const ofEndUsers = { leftOut: true, since: "0.3.0", needs: "end_users" } as const;

export const keyTerms = {
  machines: {
    kind: "machines",
    stored: "machines",
    title: "Only on these machines",
    words: "the machines that may serve it",
    without: "any",
  },
  rpm: {
    kind: "count",
    stored: "requestsPerMinute",
    title: "Requests a minute",
    words: "requests a minute at most",
    unit: "rpm",
    max: 1_000_000,
  },
  tpm: {
    kind: "count",
    stored: "tokensPerMinute",
    title: "Tokens a minute",
    words: "tokens a minute at most",
    example: "100k",
    unit: "tpm",
    max: 1_000_000_000,
  },
  concurrency: {
    kind: "count",
    stored: "concurrency",
    title: "Requests at once",
    words: "requests under way at once at most",
    unit: "at once",
    max: 10_000,
  },
  budget: {
    kind: "budget",
    stored: "budget",
    title: "Budget",
    words: "tokens a calendar day or month (UTC)",
    example: "2M/month",
    unit: "tokens",
  },
  spend: {
    kind: "money",
    stored: "spend",
    title: "Spend",
    words: "money a calendar day or month (UTC), in the currency of the site",
    example: "500/month",
    leftOut: true,
    unit: "money",
    since: "0.3.0",
  },
  loads: {
    kind: "count",
    stored: "loadsPerMinute",
    title: "Loads a minute",
    words: "models a minute that may be loaded for it in place of others",
    without: `the usual ${loadsPerMinuteDefault}`,
    leftOut: true,
    unit: "loads/min",
    min: 0,
    max: 10_000,
    zero: "never",
    per: " a minute",
  },
  external: {
    kind: "mark",
    stored: "external",
    title: "External machines",
    words: "let routes that say so lead it to external machines, such as a cloud",
    back: "keep it from external machines",
    usual: false,
    text: "where a route says so",
  },
  continues: {
    kind: "mark",
    stored: "continues",
    title: "Answers go on elsewhere",
    words: "let no other machine go on with its answers when theirs is lost",
    back: "let other machines go on with its answers when theirs is lost",
    usual: true,
    text: "no: its answers end with their machine",
    option: "continue",
  },
  store_responses: {
    kind: "mark",
    stored: "storesResponses",
    title: "Stored responses",
    words: "store its responses, encrypted, so that clients go on from them",
    back: "store no more of its responses",
    usual: false,
    text: "stored, encrypted",
    label: "responses",
  },
  capture: {
    kind: "choice",
    stored: "capture",
    title: "Content kept for",
    words: "how long prompts and answers of its requests are kept for admins, at gateways with TRUNKLINE_CAPTURE=on",
    example: "7d",
    leftOut: true,
    choices: ["1h", "1d", "7d", "30d"],
    per: ", at gateways with TRUNKLINE_CAPTURE=on",
    since: "0.3.0",
  },
  end_users: {
    kind: "choice",
    stored: "endUsers",
    title: "End users named by",
    words: "where requests name the end user of an app: a header or a field",
    label: "end users",
    leftOut: true,
    choices: ["header", "field"],
    since: "0.3.0",
  },
  per_user_rpm: {
    kind: "count",
    stored: "perUserRpm",
    title: "Requests a minute of each user",
    words: "requests a minute of each end user at most",
    label: "per user rpm",
    max: 1_000_000,
    ...ofEndUsers,
  },
  per_user_budget: {
    kind: "budget",
    stored: "perUserBudget",
    title: "Budget of each user",
    words: "tokens of each end user a calendar day or month (UTC)",
    example: "100k/day",
    label: "per user budget",
    ...ofEndUsers,
  },
  per_user_spend: {
    kind: "money",
    stored: "perUserSpend",
    title: "Spend of each user",
    words: "money of each end user a calendar day or month (UTC), in the currency of the site",
    example: "2/day",
    label: "per user spend",
    ...ofEndUsers,
  },
} as const satisfies Readonly<Record<string, TermRow>>;

export type Rows = typeof keyTerms;
export type TermName = keyof Rows;
export type LimitName = { [Name in TermName]: Rows[Name] extends { readonly unit: string } ? Name : never }[TermName];

export const budgetPeriods = ["day", "month"] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

interface ValueOfKind {
  readonly machines: readonly string[];
  readonly count: number;
  readonly budget: { readonly tokens: number; readonly per: BudgetPeriod };
  readonly money: { readonly millionths: number; readonly per: BudgetPeriod };
}
/** The value of a term that is set. A mark has one value. */
export type TermValue<Name extends TermName> = Rows[Name] extends {
  readonly kind: infer Kind extends keyof ValueOfKind;
}
  ? ValueOfKind[Kind]
  : Rows[Name] extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : Rows[Name] extends { readonly usual: true }
      ? false
      : true;

type LeftOutTerm = { readonly kind: "mark" } | { readonly leftOut: true };
/** The terms of a key as answers show them. */
export type ShownTerms = {
  readonly [Name in TermName as Rows[Name] extends LeftOutTerm ? never : Name]: TermValue<Name> | null;
} & {
  readonly [Name in TermName as Rows[Name] extends LeftOutTerm ? Name : never]?: TermValue<Name> | undefined;
};

/** Some terms, as answers show them. */
export type SomeTerms = { readonly [Name in TermName]?: ShownTerms[Name] | null };

/** The terms that an issuer sets. An omitted term stays as it is; null removes the term. */
export type GivenTerms = {
  readonly [Name in TermName]?:
    | (Rows[Name] extends { readonly kind: "mark" } ? boolean : TermValue<Name> | null)
    | undefined;
};
export const termRows = Object.entries(keyTerms) as readonly (readonly [TermName, TermRow])[];
/** The terms that the record of a key has in its `limits`. */
export const limitRows = termRows.filter(([, row]) => "unit" in row);
/** The limits that a team and a person have too. */
export type BookLimit = Exclude<LimitName, "loads">;
export const bookLimitRows = limitRows.filter((each): each is readonly [BookLimit, TermRow] => each[0] !== "loads");

/** Returns the value of a term in words. Undefined for a key without the term, unless answers say null for it. */
export function termText(
  [name, row]: (typeof termRows)[number],
  shown: SomeTerms,
  countText: (count: number) => string,
): string | undefined {
  const value = shown[name];
  if (row.kind === "mark") return value === undefined ? undefined : row.text;
  if (value === undefined) return undefined;
  if (typeof value === "number") return value === 0 && row.zero ? row.zero : countText(value) + (row.per ?? "");
  if (typeof value === "string") return value + (row.per ?? "");
  if (value === null || typeof value === "boolean") return row.without ?? "none";
  if ("millionths" in value) return `${amountText(value.millionths)}/${value.per}`;
  return "tokens" in value ? `${countText(value.tokens)}/${value.per}` : value.join(", ");
}

/** Returns the limits of a key in short, without the missing ones: `60 rpm, 4 at once, 1M/day, spend 500.00/month`. */
export function limitsText(shown: SomeTerms, countText: (count: number) => string): string {
  const set = limitRows.filter(([name]) => shown[name] !== undefined && shown[name] !== null);
  const texts = set.map(([name, row]) => {
    const value = shown[name];
    if (typeof value === "number" && row.kind === "count") return `${countText(value)} ${row.unit}`;
    return `${row.kind === "money" ? `${name} ` : ""}${termText([name, row], shown, countText)}`;
  });
  return texts.join(", ");
}
