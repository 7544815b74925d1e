import type { Model } from "#shared/model/model.ts";
import { lacks, type Explained, type Needs } from "../dispatch/choose-machine.ts";
import type { RosterMachine } from "./roster.ts";
import { whyAway, whyDraining, whySilent, whyUnheard } from "./why-no-work.ts";

const grouped = new Intl.NumberFormat("en-US");

/** Returns in words why a machine has its rank or gets no request; undefined when nothing is against it. */
export function whyThisRank(
  { reason, load, model }: Explained,
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
    default:
      return words[reason];
  }
}

type Plain = Exclude<
  Explained["reason"],
  undefined | "denied" | "offline" | "suspect" | "unable" | "small_window" | "busy"
>;

const words: Readonly<Record<Plain, string>> = {
  breaker: "its breaker is open: it failed again and again with this model",
  contradicts: "it said busy again and again though its presence told a free slot: others come first",
  full: "its queue is full",
  slower: "was slower lately",
  warm: "has the conversation at hand",
  drawn: "as good as others: the less loaded of two that are drawn comes first",
  draining: whyDraining,
  broker_away: whyUnheard,
  no_runtime: "no model server answers",
  no_model: "does not offer the model",
  not_permitted: "its record does not permit the model (trunkline machines)",
  too_old: "its agent is older than this kind of request",
  tried: "had the request already",
};

function whatItLacks(model: Model | undefined, needs: Needs): string {
  const fault = model === undefined ? undefined : lacks(model, needs);
  return fault?.message ?? words.no_model;
}
