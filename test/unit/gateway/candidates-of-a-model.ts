import type { Candidate } from "../../../services/gateway/routing/choose-machine.ts";
import type { Work } from "../../../services/gateway/routing/expected-cost.ts";
import type { Speed } from "../../../services/gateway/routing/measured-speeds.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";

/** A machine that is there and has the model `llama3`, with what a test says of it. */
export function candidate(
  machine: string,
  {
    window = 4_096,
    slots = 1,
    running = 0,
    queued = 0,
    queueMax = 8,
    ...about
  }: {
    readonly window?: number;
    readonly slots?: number;
    readonly running?: number;
    readonly queued?: number;
    readonly queueMax?: number;
  } & Partial<Omit<Candidate, "presence" | "model">> = {},
): Candidate {
  return {
    status: "present",
    presence: presenceOf(machine, { slots, running, queued, queueMax }),
    model: modelOf("llama3", { context_window: window }),
    ...about,
  };
}

/** The speed of a machine that computes a prompt token in so many milliseconds, and an answer's token in ten times that. */
export function speed(promptTokenMs: number, given: Partial<Speed> = {}): Speed {
  return {
    beginMs: 0,
    promptTokenMs,
    tokenMs: 10 * promptTokenMs,
    jobTokenMs: 0,
    answerMs: 1_000 * promptTokenMs,
    ...given,
  };
}

/** The work of a request with a prompt and an answer of so many tokens. */
export function work(promptTokens: number, { cachedTokens = 0, answerTokens = 100 } = {}): Work {
  return { promptTokens, cachedTokens, answerTokens };
}
