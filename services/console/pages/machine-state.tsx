import { machineTones, machineWord } from "#shared/fleet/fleet-words.ts";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { Badge } from "../parts.tsx";

export function MachineState({ machine }: { readonly machine: ShownFleetMachine }) {
  const word = machineWord(machine);
  return <Badge tone={machineTones[word]}>{word}</Badge>;
}
