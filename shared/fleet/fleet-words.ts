/** The words for machines and kept models that the command line and the console share. Pure. */
import type { MachineState } from "../protocol/model.ts";
import type { ShownFleetMachine } from "./shown-fleet.ts";
import type { ShownPlan } from "./shown-plan.ts";

/** The states of a machine as people see them, and how good each is. */
export const machineTones = {
  ready: "good",
  waiting: "warn",
  draining: "warn",
  cordoned: "warn",
  joining: "warn",
  revoked: "bad",
  suspect: "warn",
  offline: "bad",
  unknown: "bad",
  "left out": "bad",
} as const;

/** Returns the state that a machine reports itself, unless the gateway sees otherwise. */
export function machineWord({ status, state, pairing }: ShownFleetMachine): keyof typeof machineTones {
  if (pairing === "revoked") return "revoked";
  if (status === "left_out") return "left out";
  if (status === "unknown") return "unknown";
  if (status === "offline" || state === "gone") return pairing === "joining" ? "joining" : "offline";
  if (state === "draining") return "draining";
  if (pairing === "cordoned") return "cordoned";
  if (state === "waiting") return "waiting";
  return status === "suspect" ? "suspect" : "ready";
}

/** Returns the jobs of all boots of a machine that are there, as they report them, and those that this gateway just placed. */
export function jobsLeft(boots: readonly ShownFleetMachine[]): { readonly running: number; readonly waiting: number } {
  const there = boots.filter(({ status }) => status !== "offline");
  const sum = (count: (boot: ShownFleetMachine) => number): number => there.reduce((all, boot) => all + count(boot), 0);
  const waiting = sum(({ queued }) => queued);
  const running = sum(({ running: reported, queued, open_jobs: open }) => Math.max(reported, open - queued));
  return { running, waiting };
}

/** The states of a kept model on a machine, and how good each is. */
export const keptWords: Readonly<
  Record<ShownPlan["data"][number]["state"], readonly [tone: "good" | "warn" | "plain" | "bad", word: string]>
> = {
  loaded: ["good", "in memory"],
  loading: ["plain", "loading"],
  waits: ["warn", "waits"],
  suspended: ["warn", "suspended"],
  pulling: ["plain", "pulling"],
  missing: ["bad", "missing"],
  failed: ["bad", "failed"],
  load: ["plain", "to be loaded"],
  pull: ["plain", "to be pulled"],
  unmet: ["bad", "nowhere"],
};

/** The reasons for which the models of a machine are not listed. */
export const notListed: Readonly<Record<Exclude<MachineState, "listed">, string>> = {
  no_runtime: "has no model server that answers",
  no_answer: "did not answer in time",
  stopping: "is draining",
  offline: "is not reachable",
};
