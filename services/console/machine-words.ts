/** The troubles, jobs and versions of machines, in words. Pure. */
import { jobsLeft, machineTones, machineWord } from "#shared/fleet/fleet-words.ts";
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
  offline: "Check that its agent runs and reaches this site: trunkline doctor on the machine finds the cause.",
  waiting: "No model server answers there. Start one, such as Ollama: the site serves its models within seconds.",
  suspect: "The machine was silent for two seconds: it may be busy, or its connection may be broken.",
  "left out": "Another agent uses the same name, or the agent has another version.",
};

/** Returns how many requests a machine that gets no new ones has left; undefined for every other machine. */
export function drainWords(boots: readonly ShownFleetMachine[]): string | undefined {
  if (!boots.some((boot) => drained.has(machineWord(boot)))) return undefined;
  const { running, waiting } = jobsLeft(boots);
  const left = running + waiting;
  return left === 0 ? "Empty: can be switched off" : `Draining: ${left} ${left === 1 ? "request" : "requests"} left`;
}

const drained: ReadonlySet<string> = new Set(["cordoned", "draining"]);

/** True if the version of a gateway is newer than that of an agent. Unknown versions are not compared. */
export function isOutdated(agent: string | null | undefined, gateway: string): boolean {
  const [one, other] = [agent, gateway].map((version) =>
    /^(\d+)\.(\d+)\.(\d+)/
      .exec(version ?? "")
      ?.slice(1)
      .map(Number),
  );
  if (one === undefined || other === undefined) return false;
  const place = one.findIndex((part, at) => part !== other[at]);
  return place !== -1 && (one[place] ?? 0) < (other[place] ?? 0);
}
