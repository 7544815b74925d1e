import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { stateOf } from "../machine-words.ts";
import { Badge } from "../parts.tsx";

export function MachineState({ machine }: { readonly machine: ShownFleetMachine }) {
  const { word, tone } = stateOf(machine);
  return <Badge tone={tone}>{word}</Badge>;
}
