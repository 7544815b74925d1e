import type { Clock } from "#shared/process/clock.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { type KnownLoad, uncachedTokens, type Work } from "./expected-cost.ts";
import type { Target } from "../fleet/roster.ts";

/** The open jobs of a gateway on a machine, and the prompt tokens that the machine computes before their first tokens. */
export interface PlacedLoad extends Target, KnownLoad {}

interface OwnLoad extends Target {
  jobs: number;
  /** Jobs that the machine has accepted. Only these can be in its presences. */
  accepted: number;
  backlogTokens: number;
}

/** One job of this gateway, as a part of its machine's load. */
export interface OpenLoad {
  readonly own: OwnLoad;
  /** The tokens of its prompt until that is computed. */
  waitingTokens: number;
  isAccepted: boolean;
}

/** The jobs of a machine's latest presence of which this gateway does not know. */
interface UnknownJobs {
  readonly epoch: string;
  /** All jobs of the presence. */
  readonly reported: number;
  readonly reportedAtMs: number;
  jobs: number;
}

/** A job that becomes known this soon after a presence was in it: accepts and news of gateways come by other ways. */
const knownLateMs = 200;

/**
 * Adds up the load of each machine: this gateway's own open jobs, those that other gateways told, and those that the
 * machine's latest presence counts beyond these. A machine therefore never seems less busy than its gateways made it.
 */
export class PlacedLoads {
  readonly #own = new Map<string, OwnLoad>();
  /** The loads that each other gateway told last, by machine. */
  readonly #told = new Map<string, ReadonlyMap<string, PlacedLoad>>();
  readonly #unknown = new Map<string, UnknownJobs>();
  readonly #clock: Pick<Clock, "now">;
  readonly #changed: () => void;

  /** `changed` is called when this gateway's own loads changed. */
  constructor(clock: Pick<Clock, "now">, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  placed({ machine, epoch }: Target, work: Work): OpenLoad {
    const known = this.#own.get(machine);
    const own = known?.epoch === epoch ? known : { machine, epoch, jobs: 0, accepted: 0, backlogTokens: 0 };
    // A job for an older boot of the machine is no load of the present one.
    if (known === undefined || known.epoch < epoch) this.#own.set(machine, own);
    const waitingTokens = uncachedTokens(work);
    own.jobs += 1;
    own.backlogTokens += waitingTokens;
    this.#changed();
    return { own, waitingTokens, isAccepted: false };
  }

  /** Called once, when the machine has the job. */
  accepted(load: OpenLoad): void {
    load.isAccepted = true;
    load.own.accepted += 1;
    this.#nowKnown(load.own);
  }

  /** Called when the prompt is computed. */
  begun(load: OpenLoad): void {
    if (load.waitingTokens === 0) return;
    load.own.backlogTokens -= load.waitingTokens;
    load.waitingTokens = 0;
    this.#changed();
  }

  /** Called once, however the job ended. */
  ended({ own, waitingTokens, isAccepted }: OpenLoad): void {
    own.backlogTokens -= waitingTokens;
    own.jobs -= 1;
    if (isAccepted) own.accepted -= 1;
    if (own.jobs === 0 && this.#own.get(own.machine) === own) this.#own.delete(own.machine);
    this.#changed();
  }

  /** Takes the loads that another gateway told, in place of those before. */
  told(gateway: string, loads: readonly PlacedLoad[]): void {
    if (loads.length === 0) this.#told.delete(gateway);
    else this.#told.set(gateway, new Map(loads.map((load) => [load.machine, load])));
    for (const load of loads) this.#nowKnown(load);
  }

  /** Takes what a machine reports of itself. */
  reported({ machine, epoch, running, queued }: Presence): void {
    const reported = running + queued;
    const jobs = reported - this.#knownOn({ machine, epoch });
    if (jobs > 0) this.#unknown.set(machine, { epoch, reported, reportedAtMs: this.#clock.now(), jobs });
    else this.#unknown.delete(machine);
  }

  /** Stops counting jobs as unknown that became known just after the presence that counts them. */
  #nowKnown(target: Target): void {
    const unknown = this.#unknown.get(target.machine);
    if (unknown?.epoch !== target.epoch || this.#clock.now() - unknown.reportedAtMs > knownLateMs) return;
    unknown.jobs = Math.max(0, Math.min(unknown.jobs, unknown.reported - this.#knownOn(target)));
  }

  /** The jobs that a presence of the machine can count, as far as this gateway knows. */
  #knownOn(target: Target): number {
    const own = this.#own.get(target.machine);
    return (own?.epoch === target.epoch ? own.accepted : 0) + this.#toldOf(target).jobs;
  }

  of(target: Target): KnownLoad {
    const { machine, epoch } = target;
    const own = this.#own.get(machine);
    const unknown = this.#unknown.get(machine);
    let { jobs, backlogTokens } = this.#toldOf(target);
    if (unknown?.epoch === epoch) jobs += unknown.jobs;
    if (own?.epoch === epoch) {
      jobs += own.jobs;
      backlogTokens += own.backlogTokens;
    }
    return { jobs, backlogTokens };
  }

  /** This gateway's own loads. */
  own(): readonly PlacedLoad[] {
    return Array.from(this.#own.values(), ({ machine, epoch, jobs, backlogTokens }) => ({
      machine,
      epoch,
      jobs,
      backlogTokens,
    }));
  }

  /** Returns the open jobs of another gateway, as it told them, or of this one. */
  jobsOf(gateway?: string): number {
    const loads = gateway === undefined ? this.#own.values() : (this.#told.get(gateway)?.values() ?? []);
    return [...loads].reduce((sum, { jobs }) => sum + jobs, 0);
  }

  #toldOf({ machine, epoch }: Target): KnownLoad {
    let [jobs, backlogTokens] = [0, 0];
    for (const loads of this.#told.values()) {
      const load = loads.get(machine);
      if (load?.epoch !== epoch) continue;
      jobs += load.jobs;
      backlogTokens += load.backlogTokens;
    }
    return { jobs, backlogTokens };
  }
}
