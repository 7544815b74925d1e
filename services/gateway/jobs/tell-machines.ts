import type { Broker } from "#shared/broker/broker.ts";
import type { Control } from "#shared/protocol/job.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { machineSubject } from "#shared/protocol/subjects.ts";
import type { Target } from "../fleet/roster.ts";
import type { OpenJob } from "./open-job.ts";

interface TellerOptions {
  readonly broker: Broker;
  /** Id of this boot of the gateway. */
  readonly gateway: string;
}

/** The open jobs by machine. */
type JobsOfMachines = ReadonlyMap<string, ReadonlySet<OpenJob>>;

/** Jobs of one message that acknowledges their ends. */
const finishedAtOnce = 1_000;

/** Tells machines what this gateway knows of their jobs: that it lives, what clients have read, and which jobs are over. */
export class MachineTeller {
  readonly #options: TellerOptions;
  /** The epoch of each machine that got a lease since the last round of leases. */
  readonly #leased = new Map<string, string>();
  /** Finished jobs that are not acknowledged yet, by the subject of their machine's boot. */
  readonly #finished = new Map<string, { target: Target; jobs: string[] }>();

  constructor(options: TellerOptions) {
    this.#options = options;
  }

  tell(target: Target, control: Control, reply?: string): void {
    const options = reply === undefined ? {} : { reply };
    this.#options.broker.publish(machineSubject(target, "control"), encodeJson(control), options);
  }

  /** Tells a machine that this gateway lives, before it gives it a job; once in each round of leases. */
  greet(target: Target): void {
    if (this.#leased.get(target.machine) !== target.epoch) this.#giveLease(target);
  }

  /** Tells the machine of a job up to which token its answer is counted here. */
  tellCounted(job: OpenJob): void {
    const counted = job.countedNews();
    if (counted.length > 0) this.#giveLease(job.target, { counted });
  }

  /**
   * Sends a lease to every machine that holds jobs of this gateway. The lease reports the bytes that clients have read.
   */
  giveLeases(jobs: JobsOfMachines): void {
    this.#leased.clear();
    for (const [target, ofBoot] of byBoot(jobs)) this.#giveLease(target, takenOf(ofBoot));
  }

  /** Tells machines up to which tokens resumable answers are counted here, for the case that this gateway dies. */
  tellCounts(jobs: JobsOfMachines): void {
    if (!this.#options.broker.connected) return;
    for (const [target, ofBoot] of byBoot(jobs)) {
      const counted = ofBoot.flatMap((job) => job.countedNews()).slice(0, limits.jobsPerAgentMax);
      if (counted.length > 0) this.#giveLease(target, { counted });
    }
  }

  #giveLease(target: Target, told: Pick<Extract<Control, { kind: "lease" }>, "taken" | "counted"> = {}): void {
    this.#leased.set(target.machine, target.epoch);
    this.tell(target, { kind: "lease", gateway: this.#options.gateway, ...told });
  }

  /**
   * Queues the acknowledgement of a terminal frame for the next tick. A message for each one would cost the broker and
   * the machine as much as an answer does. No client waits for it: the machine resends the frame only much later. That of
   * a resumable answer goes at once: its client may ask another gateway for it next, which is to count nothing of it again.
   */
  finish(target: Target, job: string, { atOnce }: { readonly atOnce: boolean }): void {
    if (atOnce) return this.tell(target, { kind: "finish", jobs: [job], gateway: this.#options.gateway });
    const subject = machineSubject(target, "control");
    this.#finished.getOrInsertComputed(subject, () => ({ target, jobs: [] })).jobs.push(job);
  }

  tellFinished(): void {
    const { gateway } = this.#options;
    for (const { target, jobs } of this.#finished.values()) {
      for (let from = 0; from < jobs.length; from += finishedAtOnce)
        this.tell(target, { kind: "finish", jobs: jobs.slice(from, from + finishedAtOnce), gateway });
    }
    this.#finished.clear();
  }
}

/** Returns the jobs of each boot of each machine. */
function* byBoot(jobs: JobsOfMachines): Generator<readonly [Target, readonly OpenJob[]]> {
  for (const [machine, ofMachine] of jobs) {
    for (const [epoch, ofBoot] of Map.groupBy(ofMachine, ({ target }) => target.epoch))
      yield [{ machine, epoch }, ofBoot];
  }
}

function takenOf(jobs: readonly OpenJob[]): { readonly taken?: [string, number][] } {
  const taken: [string, number][] = [];
  for (const { id, follower } of jobs) {
    if (taken.length === limits.jobsPerAgentMax) break;
    const bytes = follower.tellTaken();
    if (bytes !== undefined) taken.push([id, bytes]);
  }
  return taken.length > 0 ? { taken } : {};
}
