import type { Load } from "../dispatch/expected-time.ts";
import type { LeftOutCause } from "./left-out.ts";
import type { RosterMachine } from "./roster.ts";

/** What decides whether a machine gets work. */
export interface Working {
  readonly seen: RosterMachine;
  readonly load: Load;
  /** How many models it is known to offer. */
  readonly models: number;
  /** The models whose breakers are open there. */
  readonly broken: readonly string[];
}

export interface WorkVerdict {
  readonly takesWork: boolean;
  /** Why it gets none, or less than others. */
  readonly why: string | undefined;
}

const brokenNamedMax = 5;

/** Whether a machine gets work, and in words why not, or why less than others. */
export function judgeWork({ seen, load, models, broken }: Working, nowMs: number): WorkVerdict {
  const { presence, status } = seen;
  const none = (why: string): WorkVerdict => ({ takesWork: false, why });
  if (status === "offline") return none(whyAway(seen, nowMs));
  if (presence.state === "draining") return none("about to stop");
  if (presence.state === "waiting" || presence.runtime === null) return none("no model server answers");
  if (models === 0) return none("offers no model, as far as is known");
  const less = [
    ...(status === "suspect" ? [`${whySilent(seen, nowMs)}: others come first`] : []),
    ...(load.room === "none" ? ["its queue is full"] : []),
    ...(broken.length > 0 ? [`breaker open for ${namedShortly(broken)}`] : []),
  ];
  return { takesWork: true, why: less.length === 0 ? undefined : less.join("; ") };
}

/** Why a machine that is offline is taken to be so. */
export function whyAway(seen: RosterMachine, nowMs: number): string {
  if (seen.presence.state === "gone") return "has said goodbye";
  return seen.unreachable ? "nobody listens on its subject" : whySilent(seen, nowMs);
}

export function whySilent({ heardAtMs }: RosterMachine, nowMs: number): string {
  return `not heard for ${Math.max(1, Math.round((nowMs - heardAtMs) / 1_000))} s`;
}

export const whyLeftOut: Readonly<Record<LeftOutCause, string>> = {
  older: "a newer agent of the same name is there (TRUNKLINE_MACHINE)",
  "other-scale": "runs at another TRUNKLINE_TIME_SCALE",
};

function namedShortly(models: readonly string[]): string {
  const named = models.slice(0, brokenNamedMax).join(", ");
  const others = models.length - brokenNamedMax;
  return others > 0 ? `${named} and ${others} more` : named;
}
