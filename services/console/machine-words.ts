/** A machine's state in words, and what is wrong with it. Pure. */
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";

type Tone = "good" | "warn" | "bad" | "plain";

interface State {
  readonly word: string;
  readonly tone: Tone;
}

/** Returns the state that a machine reports itself, unless the gateway sees otherwise: as in `trunkline status`. */
export function stateOf({ status, state, pairing }: ShownFleetMachine): State {
  if (pairing === "revoked") return { word: "revoked", tone: "bad" };
  if (status === "left_out") return { word: "left out", tone: "bad" };
  if (status === "unknown") return { word: "unknown", tone: "bad" };
  if (status === "offline" || state === "gone") {
    return pairing === "joining" ? { word: "joining", tone: "warn" } : { word: "offline", tone: "bad" };
  }
  if (state === "draining") return { word: "draining", tone: "warn" };
  if (pairing === "cordoned") return { word: "cordoned", tone: "warn" };
  if (state === "waiting") return { word: "waiting", tone: "warn" };
  return status === "suspect" ? { word: "suspect", tone: "warn" } : { word: "ready", tone: "good" };
}

interface Trouble {
  readonly machine: string;
  readonly tone: Tone;
  readonly text: string;
}

/** Returns the troubles of machines that an operator did not ask for. A cordoned or revoked machine is none. */
export function findTroubles(machines: readonly ShownFleetMachine[]): Trouble[] {
  return machines.flatMap((machine) => {
    const { word, tone } = stateOf(machine);
    if (machine.takes_work || wanted.has(word)) return [];
    const why = machine.why === null ? "" : `: ${machine.why}`;
    return [{ machine: machine.machine, tone, text: `is ${word}${why}. ${remedies[word] ?? ""}`.trim() }];
  });
}

const wanted: ReadonlySet<string> = new Set(["cordoned", "revoked", "draining", "joining"]);

const remedies: Readonly<Record<string, string>> = {
  offline: "Look whether its agent runs and reaches this site: trunkline doctor on the machine says what is wrong.",
  waiting: "No model server answers there. Start one, such as Ollama: its models are served within seconds.",
  suspect: "It was silent for two seconds. It may be busy, or its line may be broken.",
  "left out": "Another agent uses its name, or it is of another version.",
};
