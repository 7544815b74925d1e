/** A machine, as far as it decides where a model is pulled to. */
interface PullingMachine {
  readonly machine: string;
  readonly takes_work: boolean;
  readonly memory?:
    | { readonly total_mb: number; readonly disk_free_mb: number | null; readonly can_pull: boolean }
    | null
    | undefined;
}

/** Returns the machine with most memory among those that take work and may pull; with most disk among equals. */
export function roomiest(machines: readonly PullingMachine[]): string | undefined {
  const able = machines.flatMap(({ machine, takes_work: takesWork, memory }) =>
    takesWork && memory?.can_pull ? [{ machine, totalMb: memory.total_mb, diskMb: memory.disk_free_mb ?? 0 }] : [],
  );
  const [first] = able.toSorted((one, other) => other.totalMb - one.totalMb || other.diskMb - one.diskMb);
  return first?.machine;
}
