import type { RankReason } from "./shown-fleet.ts";

const grouped = new Intl.NumberFormat("en-US");

/** The expected cost of a request on a machine by its parts, in milliseconds. */
interface CostParts {
  readonly loadMs: number;
  readonly slotMs: number;
  readonly backlogMs: number;
  readonly promptMs: number;
  readonly answerMs: number;
  readonly delayMs: number;
}

/** Returns what makes a request costly on a machine, the largest part first. */
export function costText(
  { loadMs, slotMs, backlogMs, promptMs, answerMs, delayMs }: CostParts,
  backlogTokens: number,
): string {
  const parts: readonly (readonly [ms: number, text: string])[] = [
    [loadMs, "to load the model"],
    [slotMs, "until a slot is free"],
    [backlogMs, `for ${grouped.format(Math.round(backlogTokens))} tokens of other prompts`],
    [promptMs, "for the prompt"],
    [answerMs, "for the answer"],
    [delayMs, "of delay for others"],
  ];
  const told = parts.filter(([ms]) => ms >= 1).toSorted(([one], [other]) => other - one);
  return told.map(([ms, text]) => `${grouped.format(Math.round(ms))} ms ${text}`).join(", ");
}

export function cachedText(cachedTokens: number): string {
  return `has ${grouped.format(Math.round(cachedTokens))} tokens of the prompt cached`;
}

/** The reasons of a machine's place in the ranking, in words. */
export const rankWords: Readonly<Record<RankReason, string>> = {
  breaker: "its breaker is open: it failed again and again with this model",
  contradicts: "it said busy again and again though its presence told a free slot: others come first",
  suspect: "was not heard for a while: others come first",
  small_window: "its window may be too small for the prompt",
  full: "its queue is full",
  busy: "no slot is free",
  slower: "costs more",
  warm: "has a part of the prompt cached",
  drawn: "costs least; one of those within 5 ms is drawn",
};
