import { cachedText, costText, rankWords } from "#shared/fleet/rank-words.ts";
import type { LeftOutReason, RankReason } from "#shared/fleet/shown-fleet.ts";
import { slotsBelievedMax, type Cost, type Load, type Work } from "./expected-cost.ts";
import type { MeasuredSpeed } from "./measured-speeds.ts";
import type { LeftOutCause, MachineStatus, RosterMachine } from "../fleet/roster.ts";
import type { Model } from "#shared/protocol/model.ts";
import { type Candidate, lacks, loadFor, type MachineChoice, type Needs } from "./choose-machine.ts";

/** The verdict on one candidate, with its reason. */
export interface Explained {
  readonly machine: string;
  readonly verdict: "ranked" | "left-out";
  /** Counted from 1. Undefined for a machine that is left out. */
  readonly rank: number | undefined;
  readonly reason: RankReason | LeftOutReason | undefined;
  readonly status: MachineStatus;
  readonly load: Load;
  readonly speed: MeasuredSpeed | undefined;
  /** Undefined for a machine that is left out. */
  readonly cost: Cost | undefined;
  readonly work: Work | undefined;
  /** The model as that machine offers it. */
  readonly model: Model | undefined;
}

/** Lists the ranked machines in order, then the left-out machines with the model, then the others. */
export function explainChoice({ weighed, leftOut }: MachineChoice): readonly Explained[] {
  const ranked = weighed.map(({ machine: { candidate, cost }, reason }, index) =>
    explained(candidate, { verdict: "ranked", rank: index + 1, reason, cost }),
  );
  const others = leftOut.toSorted(
    ({ candidate: one }, { candidate: other }) => Number(one.model === undefined) - Number(other.model === undefined),
  );
  const left = others.map(({ candidate, reason }) =>
    explained(candidate, { verdict: "left-out", rank: undefined, reason, cost: undefined }),
  );
  return [...ranked, ...left];
}

type MachineVerdict = Pick<Explained, "verdict" | "rank" | "reason" | "cost">;

function explained(candidate: Candidate, verdict: MachineVerdict): Explained {
  const { presence, model, status, speed, work } = candidate;
  return { machine: presence.machine, status, load: loadFor(candidate), speed, work, model, ...verdict };
}

/** The facts that decide if a machine gets work. */
export interface Working {
  readonly seen: RosterMachine;
  readonly load: Load;
  /** The number of models that the machine is known to offer. */
  readonly models: number;
  /** The models whose breakers are open on the machine. */
  readonly broken: readonly string[];
  /** The number of models that the machine offers without permission of its record. */
  readonly withheld?: number;
  /** A warning about the machine that changes nothing. */
  readonly remark?: string | undefined;
  /** The reason of the cordon in the machine's record. */
  readonly cordon?: string | undefined;
  /** The models for which the machine answered busy again and again although its presence reported a free slot. */
  readonly contradicted?: readonly string[];
}

export interface WorkVerdict {
  readonly takesWork: boolean;
  /** The reason why the machine gets no work, or less than others. */
  readonly why: string | undefined;
}

const brokenNamedMax = 5;

/** Decides if a machine gets work, and says in words why it gets none, or less than others. */
export function judgeWork(working: Working, nowMs: number): WorkVerdict {
  const { seen, load, models, broken, withheld = 0, contradicted = [], cordon, remark } = working;
  const { presence, status } = seen;
  const none = (why: string): WorkVerdict => ({ takesWork: false, why });
  if (status === "offline") return none(whyAway(seen, nowMs));
  if (presence.state === "draining") return none(whyDraining);
  if (cordon !== undefined) return none(whyCordoned(cordon));
  if (presence.problem !== undefined) return none(presence.problem);
  if (presence.state === "waiting" || presence.runtime === null) return none("no model server answers");
  const notPermitted = `its record does not permit ${withheld} of its models (trunkline machines)`;
  if (models === 0 && withheld > 0) return none(notPermitted);
  if (models === 0) return none("offers no model, as far as is known");
  const less = [
    ...(status === "suspect" ? [`${whySilent(seen, nowMs)}: others come first`] : []),
    ...(load.room === "none" ? ["its queue is full"] : []),
    ...(broken.length > 0 ? [`breaker open for ${namedShortly(broken)}`] : []),
    ...(contradicted.length > 0
      ? [`said busy though its presence told a free slot: others come first for ${namedShortly(contradicted)}`]
      : []),
    ...(withheld > 0 ? [notPermitted] : []),
    ...(remark === undefined ? [] : [remark]),
    ...(presence.slots > slotsBelievedMax
      ? [`${slotsBelievedMax} of its ${presence.slots} slots are believed (slotsBelievedMax)`]
      : []),
  ];
  return { takesWork: true, why: less.length === 0 ? undefined : less.join("; ") };
}

/** Returns the reason why a machine counts as offline. */
export function whyAway(seen: RosterMachine, nowMs: number): string {
  if (seen.presence.state === "gone") return seen.presence.problem ?? "has said goodbye";
  return seen.unreachable ? "its agent is not connected" : whySilent(seen, nowMs);
}

export function whySilent({ heardAtMs }: RosterMachine, nowMs: number): string {
  return `not heard for ${Math.max(1, Math.round((nowMs - heardAtMs) / 1_000))} s`;
}

/** The reason why no machine gets work while this gateway's own connection to the broker is down. */
export const whyUnheard = "the broker is away, so this gateway hears no machine";

/** Returns why a cordoned machine gets no work. */
export function whyCordoned(reason: string): string {
  return `cordoned: ${reason} (trunkline machines uncordon)`;
}

export const whyDraining = "draining: it finishes its jobs and takes no new one";

/** The reason why an external machine gets few requests. */
export const whyExternal = "its models run elsewhere: only routes that say so lead there";

export const whyGuessed =
  "its slots are a guess, since its model server reports none: set TRUNKLINE_SLOTS on its agent";

export const whyLeftOut: Readonly<Record<LeftOutCause, string>> = {
  older: "a newer agent of the same name is there (TRUNKLINE_MACHINE)",
  "other-scale": "runs at another TRUNKLINE_TIME_SCALE",
  revoked: "was revoked, but is still connected",
  "other-version": "its agent and this gateway speak different versions of the wire: update the older of the two",
};

function namedShortly(models: readonly string[]): string {
  const named = models.slice(0, brokenNamedMax).join(", ");
  const others = models.length - brokenNamedMax;
  return others > 0 ? `${named} and ${others} more` : named;
}

const grouped = new Intl.NumberFormat("en-US");

/** Returns in words why a machine has its rank or gets no request; undefined when nothing is against it. */
export function whyThisRank(
  { reason, load, model, cost, work }: Explained,
  { seen, needs, nowMs }: { readonly seen: RosterMachine; readonly needs: Needs; readonly nowMs: number },
): string | undefined {
  switch (reason) {
    case undefined:
      return undefined;
    case "offline":
      return whyAway(seen, nowMs);
    case "denied":
      return seen.presence.problem;
    case "suspect":
      return `${whySilent(seen, nowMs)}: others come first`;
    case "unable":
      return whatItLacks(model, needs);
    case "small_window":
      return `its window of ${grouped.format(model?.context_window ?? 0)} tokens may be too small for the prompt`;
    case "busy":
      return load.occupied > load.slots ? `no slot is free, and ${load.occupied - load.slots} wait` : "no slot is free";
    case "slower":
      return cost === undefined ? words.slower : `${words.slower}: ${costText(cost, load.backlogTokens)}`;
    case "warm":
      return cachedText(work?.cachedTokens ?? 0);
    default:
      return words[reason];
  }
}

type Plain = Exclude<
  Explained["reason"],
  undefined | "denied" | "offline" | "suspect" | "unable" | "small_window" | "busy" | "warm"
>;

const words: Readonly<Record<Plain, string>> = {
  ...rankWords,
  draining: whyDraining,
  cordoned: "is cordoned: it finishes its jobs and takes no new one (trunkline machines uncordon)",
  revoked: "was revoked (trunkline machines pair makes a new line for it)",
  broker_away: whyUnheard,
  external: whyExternal,
  no_runtime: "no model server answers",
  no_model: "does not offer the model",
  not_permitted: "its record does not permit the model (trunkline machines)",
  tried: "had the request already",
};

function whatItLacks(model: Model | undefined, needs: Needs): string {
  const fault = model === undefined ? undefined : lacks(model, needs);
  return fault?.message ?? words.no_model;
}
