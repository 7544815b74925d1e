import type { JobOffer } from "../../../services/gateway/jobs/answer-parts.ts";
import type { Chosen } from "../../../services/gateway/routing/choose-machine.ts";
import { expectedCost, loadOf, usualSpeed } from "../../../services/gateway/routing/expected-cost.ts";
import { modelOf } from "./machines-of-a-fleet.ts";

const load = loadOf({ slots: 2, queueMax: 4 }, { jobs: 0, backlogTokens: 0 });
const work = { promptTokens: 100, cachedTokens: 0, answerTokens: 50 };

/** A machine as it was ranked, idle and with nothing measured. */
export function chosenOf(machine: string, more: Partial<Chosen> = {}): Chosen {
  const cost = expectedCost(work, load, usualSpeed([]));
  return { machine, epoch: "epoch", model: modelOf("llama3"), reason: undefined, cost, load, cachedTokens: 0, ...more };
}

/** An offer of a job to a machine. */
export function offerOf(machine: string, { job = "job", ...more }: Partial<JobOffer> & Partial<Chosen> = {}): JobOffer {
  return { job, chosen: chosenOf(machine, more), next: more.next ?? [] };
}
