import { Fault } from "#shared/fault/fault.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Chosen, Needs } from "../routing/choose-machine.ts";
import type { JobPlacements, ModelTarget } from "../routing/job-placements.ts";
import type { MachineRanking, Wanted } from "../routing/rank-machines.ts";
import type { Continuation } from "../jobs/continue-answer.ts";

/** A request that no machine completed. `by` is the machine that took it and failed; undefined if none took it. */
export interface Unfinished {
  readonly fault: Fault;
  readonly by?: Chosen | undefined;
}

export type Failure = Unfinished & { readonly by: Chosen };

/** A target of a request with the machines to ask there, and what has come of it so far. */
export interface RankedTarget {
  readonly wanted: Wanted;
  /** The index of the target in its route. */
  readonly index: number;
  readonly ranked: readonly Chosen[];
  readonly rounds: number;
  /** The failures of machines that took the job, the last one at the end. */
  readonly failures: readonly Failure[];
  /** The fault to tell if no machine completes the request; undefined until a target has failed. */
  readonly worst?: Fault | undefined;
  /** Asks for the rest of an answer that another machine began. */
  readonly continuation?: Continuation | undefined;
}

/** The work of a request, with the models that may do it in the order in which they are tried. */
export interface TargetedWork {
  readonly targets: readonly ModelTarget[];
  readonly kind: JobKind;
  readonly needs: Needs;
}

export function wantedBy({ targets, kind, needs }: TargetedWork, signal: AbortSignal): readonly Wanted[] {
  return targets.map((target) => ({ ...target, kind, needs, signal }));
}

/** The parts that rank machines: without waiting, and with it. */
interface Rankers {
  readonly ranking: MachineRanking;
  readonly placements: Pick<JobPlacements, "rankNow">;
}

/** Ranks the machines of the first target that has some, from an index in the route on. Undefined if none has. */
export function rankNow({ placements }: Rankers, targets: readonly Wanted[], from = 0): RankedTarget | undefined {
  for (const [index, wanted] of targets.entries()) {
    const ranked = index < from ? undefined : placements.rankNow(wanted);
    if (ranked !== undefined) return rankedTarget(wanted, index, ranked);
  }
  return undefined;
}

/** Waits for the machines of all targets together, where none of them has some. */
export function rankAwaited({ ranking }: Rankers, targets: readonly Wanted[]): Promise<RankedTarget> {
  return anyOf(targets.map(async (wanted, index) => rankedTarget(wanted, index, await ranking.rank(wanted))));
}

/** Ranks the machines of the next target that has some. Only the last target waits for machines that are away. */
export async function rankNext(
  rankers: Rankers,
  targets: readonly Wanted[],
  { after, waits }: { readonly after: number; readonly waits: boolean },
): Promise<RankedTarget | undefined> {
  const now = rankNow(rankers, targets, after + 1);
  const index = targets.length - 1;
  const last = targets[index];
  if (now !== undefined || !waits || last === undefined || index <= after) return now;
  const ranked = await rankers.ranking.rank(last).catch(() => undefined);
  return ranked && rankedTarget(last, index, ranked);
}

function rankedTarget(wanted: Wanted, index: number, ranked: readonly Chosen[]): RankedTarget {
  return { wanted, index, ranked, rounds: 1, failures: [] };
}

/**
 * Resolves to the first result. If there is none, throws the first fault that is not `model_not_found`: a target that
 * does not exist says less than one that is away.
 */
export async function anyOf<Result>(results: readonly Promise<Result>[]): Promise<Result> {
  try {
    return await Promise.any(results);
  } catch (thrown) {
    const faults =
      thrown instanceof AggregateError ? thrown.errors.map((each) => Fault.from(each)) : [Fault.from(thrown)];
    throw faults.find(({ code }) => code !== "model_not_found") ?? faults[0];
  }
}
