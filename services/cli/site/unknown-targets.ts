import type { MachineRecord } from "#shared/records/machine-record.ts";
import { aliasedId } from "#shared/protocol/model.ts";
import type { Sighting } from "#shared/store/known-models.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { nearestFirst } from "#shared/process/nearest-names.ts";
import { targetText } from "#shared/records/route-record.ts";
import type { RouteTarget } from "#shared/records/route-record.ts";

const nearestShownMax = 3;

/** Returns a warning for each target that no machine has offered lately, with the names of models that are near it. */
export function unknownTargets(
  targets: readonly RouteTarget[],
  { sightings, machines }: { readonly sightings: readonly Sighting[]; readonly machines: readonly MachineRecord[] },
): readonly string[] {
  return targets.flatMap((target) => {
    const allowed = machinesOf(target, machines);
    const offered = sightings.filter(({ machine }) => allowed.includes(machine)).map(({ model }) => model);
    if (offered.includes(target.model) || offered.includes(aliasedId(target.model))) return [];
    const others = sightings.filter(({ machine, model }) => machine !== "" && model === target.model);
    const near = nearestFirst(target.model, [...new Set(sightings.map(({ model }) => model))]);
    const [lead, names] =
      others.length > 0
        ? ["It is on", others.map(({ machine }) => machine)]
        : ["The nearest:", near.slice(0, nearestShownMax).map(({ name }) => name)];
    const hint = names.length === 0 ? "" : ` ${lead} ${onOneLine(names.join(", "))}.`;
    return [`No machine has offered '${targetText(target)}' in the last 30 days.${hint}`];
  });
}

/** Returns the machines that may answer a target. The empty name stands for all that are not external, as in sightings. */
function machinesOf(target: RouteTarget, machines: readonly MachineRecord[]): readonly string[] {
  const { machines: named, label, external } = target;
  if (named !== undefined) return named;
  if (label === undefined && !external) return [""];
  return machines
    .filter((each) => (label === undefined || each.labels?.includes(label)) && each.external === external)
    .map(({ name }) => name);
}
