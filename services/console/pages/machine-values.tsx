/** How pages show what a machine does now. */
import { machineTones, machineWord } from "#shared/fleet/fleet-words.ts";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { now } from "../live.ts";
import { drainWords, isOutdated } from "../machine-words.ts";
import { numberText, sizeText } from "../quantity.ts";
import { gatewayVersion } from "../session.ts";
import { Badge, Gauge, None } from "../values.tsx";

interface OfMachine {
  readonly machine: ShownFleetMachine;
}

export function MachineState({ machine }: OfMachine) {
  const word = machineWord(machine);
  return <Badge tone={machineTones[word]}>{word}</Badge>;
}

/** The state of a machine, and how many requests it has left if it gets no new ones. */
export function MachineWork({ machine }: OfMachine) {
  return [<MachineState machine={machine} />, " ", <small>{drainWords([machine])}</small>];
}

export function MachineSlots({ machine: { running, slots } }: OfMachine) {
  return <Gauge part={running} whole={slots} text={`${running} of ${slots}`} what="slots in use" />;
}

/** The memory for models that is in use on a machine. */
export function MachineMemory({ machine: { memory } }: OfMachine) {
  if (!memory) return <None />;
  const used = memory.total_mb - memory.free_mb;
  const text = partText(used === 0 ? "0" : sizeText(used), sizeText(memory.total_mb));
  return <Gauge part={used} whole={memory.total_mb} text={text} what="in use" />;
}

/** Returns "22 of 24 GB" for a part and a whole with the same unit. */
function partText(part: string, whole: string): string {
  return `${part} of ${whole}`.replace(/^(\S+) (\w+) of (\S+) \2$/, "$1 of $3 $2");
}

/** The tokens a second of the answers that a machine ended within the last minute. */
export function MachineTokens({ machine: { machine } }: OfMachine) {
  const rates = now.value?.machine_tokens_per_second;
  return rates === undefined ? <None /> : numberText(rates[machine] ?? 0);
}

/** The version of a machine's agent, and that of the gateway if it is newer. */
export function AgentVersion({ machine: { version } }: OfMachine) {
  if (!version) return <None />;
  const isOld = isOutdated(version, gatewayVersion());
  return [version, isOld && [" ", <Badge tone="warn">{gatewayVersion()} is newer</Badge>]];
}
