/** The troubles of machines, in words. Pure. */
import { machineTones, machineWord } from "#shared/fleet/fleet-words.ts";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";

type MachineTone = (typeof machineTones)[keyof typeof machineTones];

interface Trouble {
  readonly machine: string;
  readonly tone: MachineTone;
  readonly text: string;
}

/** Returns the troubles of machines that an operator did not ask for. A cordoned or revoked machine is none. */
export function findTroubles(machines: readonly ShownFleetMachine[]): Trouble[] {
  return machines.flatMap((machine) => {
    const word = machineWord(machine);
    if (machine.takes_work || wanted.has(word)) return [];
    const why = machine.why === null ? "" : `: ${machine.why}`;
    return [
      { machine: machine.machine, tone: machineTones[word], text: `is ${word}${why}. ${remedies[word] ?? ""}`.trim() },
    ];
  });
}

const wanted: ReadonlySet<string> = new Set(["cordoned", "revoked", "draining", "joining"]);

const remedies: Readonly<Record<string, string>> = {
  offline: "Look whether its agent runs and reaches this site: trunkline doctor on the machine says what is wrong.",
  waiting: "No model server answers there. Start one, such as Ollama: its models are served within seconds.",
  suspect: "It was silent for two seconds. It may be busy, or its line may be broken.",
  "left out": "Another agent uses its name, or it is of another version.",
};
