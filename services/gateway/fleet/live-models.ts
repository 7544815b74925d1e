import { Fault } from "#shared/fault/fault.ts";
import type { Catalogue, Model } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { OpenJobs } from "../dispatch/open-jobs.ts";
import { askCatalogue } from "./ask-catalogue.ts";
import { mergeCatalogues } from "./merge-catalogues.ts";
import type { Roster } from "./roster.ts";

export interface Listing {
  readonly models: readonly Model[];
  /** Machines that are thought to be there but did not answer in time. */
  readonly unanswered: readonly string[];
}

interface ListOptions {
  readonly jobs: OpenJobs;
  readonly roster: Roster;
  readonly timing: Timing;
  readonly clock: Clock;
}

/**
 * Asks every machine that is there for its models, live and in parallel: an answer means that the site and a machine
 * are both well, which is what the contract's health check asks. Callers that come within `modelsShareMs` share one
 * round, so that probes cost the machines nothing.
 */
export class LiveModels {
  readonly #options: ListOptions;
  #round: { startedAtMs: number; listing: Promise<Listing> } | undefined;

  constructor(options: ListOptions) {
    this.#options = options;
  }

  list(): Promise<Listing> {
    const nowMs = this.#options.clock.now();
    if (this.#round === undefined || nowMs - this.#round.startedAtMs > this.#options.timing.modelsShareMs) {
      this.#round = { startedAtMs: nowMs, listing: this.#ask(nowMs) };
    }
    return this.#round.listing;
  }

  async #ask(nowMs: number): Promise<Listing> {
    const { jobs, roster, timing, clock } = this.#options;
    jobs.insistOnConnection();
    const present = roster.present(nowMs).flatMap(({ presence }) => (presence.state === "draining" ? [] : [presence]));
    const answers = await Promise.allSettled(
      present.map(({ machine, epoch }) =>
        askCatalogue({ jobs, target: { machine, epoch }, withinMs: timing.modelsWaitMs, clock }),
      ),
    );
    const catalogues: Catalogue[] = [];
    const unanswered: string[] = [];
    let runtimeOffline = false;
    for (const [place, answer] of answers.entries()) {
      if (answer.status === "fulfilled") catalogues.push(answer.value);
      else if (Fault.from(answer.reason).code === "runtime_offline") runtimeOffline = true;
      else unanswered.push(present[place]?.machine ?? "");
    }
    if (catalogues.length > 0) return { models: mergeCatalogues(catalogues), unanswered };
    jobs.insistOnConnection();
    if (runtimeOffline) {
      throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
    }
    throw new Fault("agent_offline", { message: "No paired GPU machine is reachable." });
  }
}
