/** Sums of usage, for the command line and the console. The browser loads this file. */
export const usageFigures = [
  "requests",
  "failed",
  "prompt_tokens",
  "completion_tokens",
  "answered",
  "first_token_ms",
  "duration_ms",
  "cost",
] as const;
export type UsageFigures = Readonly<Record<(typeof usageFigures)[number], number>>;

/** Parts that can be told apart together. */
export const usageParts = ["key", "team", "person", "kind", "model", "day"] as const;
export type UsagePart = (typeof usageParts)[number];
/** Parts with rows of their own, which tell nothing but days apart; those of end users also keys. */
export const cutParts = ["machine", "user"] as const;
export type CutPart = (typeof cutParts)[number];
export type AnyUsagePart = UsagePart | CutPart;

/** Gateways of 0.2.0 tell no cost. */
export type ToldFigures = Omit<UsageFigures, "cost"> & { readonly cost?: number | undefined };
/** A row of usage as the admin API shows it. The model is null for requests that named none. */
export type FiguresOfDay = ToldFigures & { readonly day: string } & {
  readonly [Part in AnyUsagePart]?: string | null | undefined;
};

/** The usage of one group. A part that was not asked for is summed over all its values. */
export interface SummedUsage extends UsageFigures {
  readonly part: { readonly [Part in AnyUsagePart]?: string | null };
}

const allParts = [...usageParts, ...cutParts];

/** Sums usage by these parts. Sorts by day, then by tokens with the largest first. */
export function sumUsage(rows: readonly FiguresOfDay[], by: readonly AnyUsagePart[]): readonly SummedUsage[] {
  const parts = allParts.filter((part) => by.includes(part));
  const groups = Map.groupBy(rows, (row) => JSON.stringify(parts.map((part) => row[part] ?? null)));
  const sums = [...groups.values()].map((own) => {
    const part = Object.fromEntries(parts.map((each) => [each, own[0]?.[each] ?? null]));
    return { part, ...totalUsage(own) };
  });
  return sums.sort(compareSums);
}

export function totalUsage(rows: readonly ToldFigures[]): UsageFigures {
  const sums = usageFigures.map((name) => [name, rows.reduce((sum, row) => sum + (row[name] ?? 0), 0)]);
  return Object.fromEntries(sums) as UsageFigures;
}

/** Returns the mean times. Null when there is no request to take a mean of. */
export function meansOf({ requests, answered, first_token_ms: firstTokenMs, duration_ms: durationMs }: UsageFigures) {
  return {
    firstTokenMs: answered === 0 ? null : firstTokenMs / answered,
    durationMs: requests === 0 ? null : durationMs / requests,
  };
}

function compareSums(one: SummedUsage, other: SummedUsage): number {
  const tokens = (sum: SummedUsage): number => sum.prompt_tokens + sum.completion_tokens;
  const differing = allParts.find((part) => one.part[part] !== other.part[part]) ?? "day";
  return (
    compareText(one.part.day, other.part.day) ||
    tokens(other) - tokens(one) ||
    other.requests - one.requests ||
    compareText(one.part[differing], other.part[differing])
  );
}

/** Compares by UTF-16 code units, so that the order is the same on every host. */
export function compareText(one: string | null = "", other: string | null = ""): number {
  const [first, second] = [one ?? "", other ?? ""];
  return first < second ? -1 : first > second ? 1 : 0;
}
