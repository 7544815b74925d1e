import type { Candidate } from "../../../services/gateway/fleet/choose-machine.ts";
import type { Speed } from "../../../services/gateway/fleet/expected-time.ts";
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
  } & Partial<Omit<Candidate, "presence" | "catalogue">> = {},
): Candidate {
  return {
    status: "present",
    presence: presenceOf(machine, { slots, running, queued, queueMax }),
    catalogue: [modelOf("llama3", { context_window: window })],
    ...about,
  };
}

/** Of a machine that takes this long for an answer of a hundred tokens. */
export function speed(totalMs: number, { answerTokens = 100, firstTokenMs = totalMs / 2 } = {}): Speed {
  return { firstTokenMs, restMs: totalMs - firstTokenMs, answerTokens };
}
